/// The shard kernels against double arithmetic and against plain scalar code, at odd sizes and alignments.
#include "shard/kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fluentps::kernels {
namespace {

constexpr std::size_t kMargin = 5;
constexpr float kGuard = 12345.0F;

/// `n` values beginning `shift` elements into a guarded buffer.
class Guarded {
 public:
  Guarded(std::size_t n, std::size_t shift, float phase) : shift_(shift), n_(n), data_(n + shift + kMargin, kGuard) {
    for (std::size_t j = 0; j < n; ++j) data_[shift + j] = std::sin(phase + 0.7F * static_cast<float>(j));
  }
  std::span<float> values() { return {data_.data() + shift_, n_}; }
  bool guards_intact() const {
    for (std::size_t j = 0; j < data_.size(); ++j) {
      if ((j < shift_ || j >= shift_ + n_) && data_[j] != kGuard) return false;
    }
    return true;
  }

 private:
  std::size_t shift_;
  std::size_t n_;
  std::vector<float> data_;
};

/// One float rounding of a*b, one of the sum. volatile keeps the compiler from fusing or widening.
float scalar_axpy(float w, float scale, float u) {
  volatile float product = scale * u;
  volatile float sum = w + product;
  return sum;
}

class Kernels : public testing::TestWithParam<std::size_t> {};

TEST_P(Kernels, Store) {
  Guarded sum(GetParam(), 1, 0), u(GetParam(), 3, 1);
  store(sum.values(), u.values());
  for (std::size_t j = 0; j < GetParam(); ++j) EXPECT_EQ(sum.values()[j], u.values()[j]);
  EXPECT_TRUE(sum.guards_intact());
}

TEST_P(Kernels, Add) {
  Guarded sum(GetParam(), 1, 0), old(GetParam(), 0, 0), u(GetParam(), 3, 1);
  add(sum.values(), u.values());
  for (std::size_t j = 0; j < GetParam(); ++j) {
    const double exact = static_cast<double>(old.values()[j]) + static_cast<double>(u.values()[j]);
    EXPECT_EQ(sum.values()[j], static_cast<float>(exact));
  }
  EXPECT_TRUE(sum.guards_intact());
}

TEST_P(Kernels, Apply) {
  constexpr float kScale = -1.0F / 3;
  Guarded w(GetParam(), 2, 0), old(GetParam(), 0, 0), u(GetParam(), 1, 1);
  apply(w.values(), u.values(), kScale);
  for (std::size_t j = 0; j < GetParam(); ++j) {
    const double exact = static_cast<double>(old.values()[j]) + double{kScale} * static_cast<double>(u.values()[j]);
    EXPECT_NEAR(w.values()[j], exact, 1.2e-7);
    EXPECT_EQ(w.values()[j], scalar_axpy(old.values()[j], kScale, u.values()[j]));
  }
  EXPECT_TRUE(w.guards_intact());
}

TEST_P(Kernels, ApplySumIsAddThenApply) {
  constexpr float kScale = 1.0F / 7;
  Guarded old(GetParam(), 0, 0);
  Guarded t0(GetParam(), 1, 2), t1(GetParam(), 3, 1), t2(GetParam(), 0, 3), t3(GetParam(), 2, 4), t4(GetParam(), 1, 5);
  const std::vector<std::span<const float>> all = {t0.values(), t1.values(), t2.values(), t3.values(), t4.values()};
  std::vector<std::vector<float>> same;
  for (const auto& each : all) same.emplace_back(each.begin(), each.end());
  for (std::size_t terms = 2; terms <= all.size(); ++terms) {
    Guarded w(GetParam(), 2, 0);
    apply_sum(w.values(), std::span(all).first(terms), kScale);
    for (std::size_t j = 0; j < GetParam(); ++j) {
      volatile float total = all[0][j];
      for (std::size_t k = 1; k < terms; ++k) total = total + all[k][j];
      EXPECT_EQ(w.values()[j], scalar_axpy(old.values()[j], kScale, total)) << terms << " terms, " << j;
    }
    EXPECT_TRUE(w.guards_intact());
  }
  for (std::size_t k = 0; k < all.size(); ++k)
    EXPECT_TRUE(std::equal(all[k].begin(), all[k].end(), same[k].begin())) << "term " << k;
}

INSTANTIATE_TEST_SUITE_P(Sizes, Kernels, testing::Values(0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 1001, 100003));

TEST(KernelsOnSpecialValues, NanAndInfinityPass) {
  std::vector<float> w = {1, 1};
  const std::vector<float> u = {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
  apply(w, u, 1);
  EXPECT_TRUE(std::isinf(w[0]));
  EXPECT_TRUE(std::isnan(w[1]));
}

TEST(KernelsOnWrongLengths, AreRefused) {
  std::vector<float> two(2), three(3);
  EXPECT_THROW(store(two, three), std::invalid_argument);
  EXPECT_THROW(add(two, three), std::invalid_argument);
  EXPECT_THROW(apply(two, three, 1), std::invalid_argument);
  const std::vector<std::span<const float>> wrong = {two, three}, one = {two}, six(6, two);
  EXPECT_THROW(apply_sum(two, wrong, 1), std::invalid_argument);
  EXPECT_THROW(apply_sum(two, one, 1), std::invalid_argument);
  EXPECT_THROW(apply_sum(two, six, 1), std::invalid_argument);
}

}  // namespace
}  // namespace fluentps::kernels
