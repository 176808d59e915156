/// Every functor that kernels are made of, on the host, against the formula in double precision.
#include "shard/elementwise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace fluentps::elementwise {
namespace {

constexpr int kDraws = 20000;
/// A float32 operation errs by half a unit at most, 2^-24 of its result; `operations` of them in a row on values of
/// this size by no more than so much.
double bound(int operations, double size) { return operations * std::ldexp(size, -24) + 1e-44; }

class Draw {
 public:
  float operator()() { return std::ldexp(mantissa_(random_), exponent_(random_)); }
  float positive() { return std::abs((*this)()); }

 private:
  std::mt19937 random_{7};
  std::uniform_real_distribution<float> mantissa_{-1, 1};
  std::uniform_int_distribution<int> exponent_{-12, 12};
};

TEST(Elementwise, Sums) {
  Draw draw;
  for (int k = 0; k < kDraws; ++k) {
    const double a = draw(), b = draw(), c = draw(), scale = draw();
    auto x = static_cast<float>(a);
    Add{}(x, static_cast<float>(b));
    EXPECT_NEAR(x, a + b, bound(1, std::abs(a + b)));
    x = static_cast<float>(a);
    Apply{static_cast<float>(scale)}(x, static_cast<float>(b));
    EXPECT_NEAR(x, a + scale * b, bound(2, std::abs(a) + std::abs(scale * b)));
    x = static_cast<float>(a);
    ApplySum{static_cast<float>(scale)}(x, static_cast<float>(b), static_cast<float>(c));
    EXPECT_NEAR(x, a + scale * (b + c), bound(3, std::abs(a) + std::abs(scale) * (std::abs(b) + std::abs(c))));
    const double d = draw();
    x = static_cast<float>(a);
    ApplySum{static_cast<float>(scale)}(x, static_cast<float>(b), static_cast<float>(c), static_cast<float>(d));
    EXPECT_NEAR(x, a + scale * (b + c + d),
                bound(4, std::abs(a) + std::abs(scale) * (std::abs(b) + std::abs(c) + std::abs(d))));
    x = static_cast<float>(a);
    Scale{static_cast<float>(scale)}(x);
    EXPECT_NEAR(x, a * scale, bound(1, std::abs(a * scale)));
    Store{}(x, static_cast<float>(b));
    EXPECT_EQ(x, static_cast<float>(b));
    Fill{static_cast<float>(c)}(x);
    EXPECT_EQ(x, static_cast<float>(c));
  }
}

// g' = g + beta w;  -lr g'
TEST(Elementwise, SgdStep) {
  Draw draw;
  for (int k = 0; k < kDraws; ++k) {
    const double w = draw(), g = draw(), lr = draw.positive(), beta = draw.positive();
    float u = 0;
    Sgd{static_cast<float>(-lr), static_cast<float>(beta)}(u, static_cast<float>(w), static_cast<float>(g));
    EXPECT_NEAR(u, -lr * (g + beta * w), bound(3, lr * (std::abs(g) + std::abs(beta * w))));
  }
}

// v = m v + g';  momentum -lr v,  nesterov -lr (g' + m v)
TEST(Elementwise, MomentumAndNesterovSteps) {
  Draw draw;
  for (int k = 0; k < kDraws; ++k) {
    const double w = draw(), g = draw(), v0 = draw(), lr = draw.positive(), beta = draw.positive();
    const double m = 0.90625;  // exact in float32
    const double decayed = g + beta * w, v1 = m * v0 + decayed;
    const double size = std::abs(m * v0) + std::abs(g) + std::abs(beta * w);
    auto v = static_cast<float>(v0);
    float u = 0;
    Momentum{static_cast<float>(m), static_cast<float>(beta), static_cast<float>(-lr)}(u, v, static_cast<float>(w),
                                                                                       static_cast<float>(g));
    EXPECT_NEAR(v, v1, bound(4, size));
    EXPECT_NEAR(u, -lr * v1, bound(5, lr * size));
    v = static_cast<float>(v0);
    Nesterov{static_cast<float>(m), static_cast<float>(beta), static_cast<float>(-lr)}(u, v, static_cast<float>(w),
                                                                                       static_cast<float>(g));
    EXPECT_NEAR(v, v1, bound(4, size));
    EXPECT_NEAR(u, -lr * (decayed + m * v1), bound(8, lr * 2 * size));
  }
}

// Kingma and Ba 2015, algorithm 1, at t = 3, in double from the same constants.
TEST(Elementwise, AdamStep) {
  Draw draw;
  const double b1 = 0.875, b2 = 0.9990234375, epsilon = 0x1p-27;
  for (int k = 0; k < kDraws; ++k) {
    const double w = draw(), g = draw(), first = draw(), second = draw.positive(), lr = draw.positive();
    const double beta = 0x1p-10;
    const double decayed = g + beta * w;
    const double m1 = b1 * first + (1 - b1) * decayed, m2 = b2 * second + (1 - b2) * decayed * decayed;
    const double correction1 = 1 - b1 * b1 * b1, correction2 = 1 - b2 * b2 * b2;
    const double wanted = -lr * (m1 / correction1) / (std::sqrt(m2 / correction2) + epsilon);
    auto a = static_cast<float>(first), b = static_cast<float>(second);
    float u = 0;
    Adam{.beta1 = static_cast<float>(b1),
         .beta2 = static_cast<float>(b2),
         .rest1 = static_cast<float>(1 - b1),
         .rest2 = static_cast<float>(1 - b2),
         .decay = static_cast<float>(beta),
         .epsilon = static_cast<float>(epsilon),
         .rate = static_cast<float>(-lr / correction1),
         .root_correction = static_cast<float>(std::sqrt(correction2))}(u, a, b, static_cast<float>(w),
                                                                        static_cast<float>(g));
    const double size1 = std::abs(b1 * first) + (1 - b1) * (std::abs(g) + std::abs(beta * w));
    EXPECT_NEAR(a, m1, bound(5, size1));
    const double size2 = b2 * second + (1 - b2) * std::pow(std::abs(g) + std::abs(beta * w), 2);
    EXPECT_NEAR(b, m2, bound(8, size2));
    // The root and the quotient pass relative errors on; the moments' own weigh as above.
    const double per_moment = lr / correction1 / (std::sqrt(m2 / correction2) + epsilon);
    EXPECT_NEAR(u, wanted, per_moment * bound(5, size1) + std::abs(wanted) * (12 + 4 * size2 / m2) * 0x1p-24 + 1e-40);
  }
}

// v = m v + lr lambda g';  -v
TEST(Elementwise, LarsStep) {
  Draw draw;
  for (int k = 0; k < kDraws; ++k) {
    const double w = draw(), g = draw(), v0 = draw(), rate = draw.positive(), beta = draw.positive(), m = 0.9375;
    const double size = std::abs(m * v0) + rate * (std::abs(g) + std::abs(beta * w));
    auto v = static_cast<float>(v0);
    float u = 0;
    Lars{static_cast<float>(m), static_cast<float>(beta), static_cast<float>(rate)}(u, v, static_cast<float>(w),
                                                                                    static_cast<float>(g));
    EXPECT_NEAR(v, m * v0 + rate * (g + beta * w), bound(5, size));
    EXPECT_EQ(u, -v);
  }
}

TEST(Elementwise, SquaresAreExactAndTellWhatIsNotFinite) {
  EXPECT_EQ(Square{}(3.0F), 9.0);
  EXPECT_EQ(Square{}(0x1.000002p0F), 0x1.000004000004p0);  // 1 + 2^-22 + 2^-46, which float32 cannot hold
  EXPECT_TRUE(std::isfinite(1e9 * Square{}(std::numeric_limits<float>::max())));
  EXPECT_TRUE(std::isinf(Square{}(-std::numeric_limits<float>::infinity())));
  EXPECT_TRUE(std::isnan(Square{}(std::numeric_limits<float>::quiet_NaN())));
}

/// The value of a half, from the definition of the format: sign, exponent of `exponent_bits`, the rest mantissa.
double value_of(std::uint16_t half, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (half & 0x7FFF) >> mantissa_bits;
  const double fraction = std::ldexp(half & ((1 << mantissa_bits) - 1), -mantissa_bits);
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  if (exponent == 2 * bias + 1)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias) : sign * std::ldexp(1 + fraction, exponent - bias);
}

template <typename To, typename From>
void check_halves(int exponent_bits) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double wanted = value_of(half, exponent_bits);
    float value = 0;
    From{}(value, half);
    std::uint16_t back = 0;
    To{}(back, value);
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(value_of(back, exponent_bits)));
    } else {
      EXPECT_EQ(value, wanted);
      EXPECT_EQ(back, half);
    }
  }
}

TEST(Elementwise, EveryHalfHasItsValueAndComesBack) {
  check_halves<ToBf16, FromBf16>(8);
  check_halves<ToFp16, FromFp16>(5);
}

/// Of the neighbours of a value the nearer one is taken, at a tie the even one.
template <typename To>
void check_rounding(int exponent_bits, int lowest, int highest) {
  std::mt19937 random{11};
  std::uniform_real_distribution<double> mantissa{-2, 2};
  std::uniform_int_distribution<int> exponent{lowest, highest};
  for (int k = 0; k < kDraws; ++k) {
    const auto value = static_cast<float>(std::ldexp(mantissa(random), exponent(random)));
    std::uint16_t half = 0;
    To{}(half, value);
    const double error = std::abs(value_of(half, exponent_bits) - value);
    for (const int step : {-1, 1}) {
      const auto neighbour = static_cast<std::uint16_t>(half + step);
      if ((neighbour ^ half) & 0x8000) continue;  // beyond zero
      EXPECT_LE(error, std::abs(value_of(neighbour, exponent_bits) - value)) << value;
    }
  }
  const auto tie = [&](std::uint16_t low) {
    const double middle = (value_of(low, exponent_bits) + value_of(low + 1, exponent_bits)) / 2;
    std::uint16_t half = 0;
    To{}(half, static_cast<float>(middle));
    EXPECT_EQ(half, low % 2 == 0 ? low : low + 1);
  };
  for (std::uint16_t low = 1; low < 0x7800; low = static_cast<std::uint16_t>(low + 37)) tie(low);
}

TEST(Elementwise, HalvesAreRoundedToTheNearest) {
  check_rounding<ToBf16>(8, -100, 100);
  check_rounding<ToFp16>(5, -26, 14);
}

}  // namespace
}  // namespace fluentps::elementwise
