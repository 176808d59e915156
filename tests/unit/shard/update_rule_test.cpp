/// Steps of every optimizer, worked out by hand.
#include "shard/update_rule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "fluentps/error.hpp"

namespace fluentps {
namespace {

using Vector = std::vector<float>;

std::unique_ptr<UpdateRule> make(UpdateRuleOptions options, std::int64_t n, std::vector<LayerRange> layers = {}) {
  return make_update_rule(options, n, layers);
}

Vector step(UpdateRule& rule, const Vector& weights, const Vector& gradient, double lr) {
  Vector update(weights.size(), std::numeric_limits<float>::quiet_NaN());
  rule.step(weights, gradient, lr, update);
  return update;
}

void expect_near(const Vector& got, const Vector& wanted, float tolerance = 1e-6F) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t j = 0; j < got.size(); ++j) EXPECT_NEAR(got[j], wanted[j], tolerance * (1 + std::abs(wanted[j])));
}

// -0.5 (2 + 0.25*4) = -1.5; -0.5 (-1 + 0.25*8) = -0.5
TEST(Sgd, WithWeightDecay) {
  auto rule = make({.name = "sgd", .weight_decay = 0.25}, 2);
  EXPECT_EQ(step(*rule, {4, 8}, {2, -1}, 0.5), (Vector{-1.5F, -0.5F}));
}

// m = 0.5: v = 2, then 0.5*2 + 4 = 5, then 0.5*5 + 0 = 2.5
TEST(Momentum, ThreeSteps) {
  auto rule = make({.name = "momentum", .momentum = 0.5}, 1);
  EXPECT_EQ(step(*rule, {0}, {2}, 0.5), Vector{-1});
  EXPECT_EQ(step(*rule, {0}, {4}, 0.5), Vector{-2.5F});
  EXPECT_EQ(step(*rule, {0}, {0}, 0.5), Vector{-1.25F});
}

// A new lr scales the whole velocity at once: v = 2, then 0.5*2 = 1, at lr 0.25 -> -0.25.
TEST(Momentum, NewRateScalesTheVelocity) {
  auto rule = make({.name = "momentum", .momentum = 0.5}, 1);
  step(*rule, {0}, {2}, 0.5);
  EXPECT_EQ(step(*rule, {0}, {0}, 0.25), Vector{-0.25F});
}

// g' = 2 + 0.5*2 = 3; v = 3, update -0.5 (3 + 0.5*3) = -2.25; then g' = -1 + 0.5*4 = 1, v = 2.5, -0.5 (1 + 1.25) =
// -1.125
TEST(Nesterov, TwoStepsWithWeightDecay) {
  auto rule = make({.name = "nesterov", .momentum = 0.5, .weight_decay = 0.5}, 1);
  EXPECT_EQ(step(*rule, {2}, {2}, 0.5), Vector{-2.25F});
  EXPECT_EQ(step(*rule, {4}, {-1}, 0.5), Vector{-1.125F});
}

// First step of Adam: m/(1-b1) = g, sqrt(v/(1-b2)) = |g|, so -lr g/(|g| + eps): -0.1*2/2.5 with eps = 0.5.
// Second, g = 0, b1 = 0.5, b2 = 0.75: m = 0.5*1 = 0.5, /(1-0.25) = 2/3; v = 0.75*1 = 0.75, /(1-0.5625) = 12/7.
TEST(Adam, TwoSteps) {
  auto rule = make({.name = "adam", .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.5}, 1);
  expect_near(step(*rule, {0}, {2}, 0.1), {-0.08F});
  expect_near(step(*rule, {0}, {0}, 0.1), {static_cast<float>(-0.1 * (2.0 / 3.0) / (std::sqrt(12.0 / 7.0) + 0.5))});
}

TEST(Adam, DecayIsPartOfTheGradient) {
  auto rule = make({.name = "adam", .weight_decay = 0.5, .epsilon = 1.0}, 1);
  expect_near(step(*rule, {4}, {1}, 0.1), {-0.1F * 3 / 4});  // g' = 3
}

// Layer 1: |w| = 5, |g| = 10; beta 0.1: lambda = 0.01*5/(10 + 0.5) = 1/210; v = lr lambda (g + 0.1 w), lr = 21: 0.1
// (...) g + 0.1 w = (6.3, 8.4). Layer 2: |w| = 2, |g| = 1, lambda = 0.02/1.2 = 1/60, g + 0.1 w = 1.2, 21/60*1.2 = 0.42.
TEST(Lars, LayersByHand) {
  auto rule = make({.name = "lars", .momentum = 0.5, .weight_decay = 0.1, .trust_ratio = 0.01}, 3, {{0, 2}, {2, 1}});
  expect_near(step(*rule, {3, 4, 2}, {6, 8, 1}, 21), {-0.63F, -0.84F, -0.42F});
  // Again, same w and g: v = 0.5 v + the same.
  expect_near(step(*rule, {3, 4, 2}, {6, 8, 1}, 21), {-0.945F, -1.26F, -0.63F});
}

// |w| = |g| = 1, eta = 1: v1 = 2 at lr 2; at lr 1, v = 0.5*2*(1/2) + 1 = 1.5, as printed in the paper 0.5*2 + 1 = 2.
TEST(Lars, MomentumCorrection) {
  for (const bool corrected : {true, false}) {
    auto rule = make({.name = "lars", .momentum = 0.5, .trust_ratio = 1, .momentum_correction = corrected}, 1);
    expect_near(step(*rule, {1}, {1}, 2), {-2});
    expect_near(step(*rule, {1}, {1}, 1), {corrected ? -1.5F : -2.0F});
  }
}

// w = 3 and g = 4 throughout: |w|/|g| = 3/4 for any length, so lambda g = eta 3 and the update is -lr eta 3 = -0.3.
TEST(Lars, NormsCountEveryElement) {
  for (const std::int64_t n : {1, 7, 8, 9, 16, 100}) {
    auto rule = make({.name = "lars", .trust_ratio = 0.1}, n);
    const auto size = static_cast<std::size_t>(n);
    expect_near(step(*rule, Vector(size, 3), Vector(size, 4), 1), Vector(size, -0.3F));
    // The first and the last element count as much as the others: |w| = 3 for one 3 among zeros.
    for (const std::size_t at : {std::size_t{0}, size - 1}) {
      Vector weights(size, 0), gradient(size, 0);
      weights[at] = 3;
      gradient[size / 2] = 4;
      auto fresh = make({.name = "lars", .trust_ratio = 0.1}, n);
      EXPECT_NEAR(step(*fresh, weights, gradient, 1)[size / 2], -0.3F, 1e-6) << n << ' ' << at;
    }
  }
}

TEST(Lars, ZeroLayersStayFiniteAndCanMove) {
  auto rule = make({.name = "lars", .trust_ratio = 0.001}, 2, {{0, 1}, {1, 1}});
  expect_near(step(*rule, {0, 5}, {3, 0}, 10), {-0.03F, 0});
}

TEST(Lars, LayersMustCoverTheVector) {
  EXPECT_THROW(make({.name = "lars"}, 3, {{0, 2}}), std::invalid_argument);
  EXPECT_THROW(make({.name = "lars"}, 3, {{0, 1}, {2, 1}}), std::invalid_argument);
  EXPECT_NO_THROW(make({.name = "lars"}, 0));
}

class EveryRule : public testing::TestWithParam<const char*> {};

TEST_P(EveryRule, InPlaceGivesTheSameBits) {
  constexpr std::int64_t kSize = 37;
  Vector weights(kSize);
  std::iota(weights.begin(), weights.end(), -7.5F);
  auto apart = make({.name = GetParam(), .weight_decay = 0.01}, kSize);
  auto in_place = make({.name = GetParam(), .weight_decay = 0.01}, kSize);
  for (int t = 1; t < 4; ++t) {
    Vector gradient(kSize);
    for (std::size_t j = 0; j < gradient.size(); ++j) gradient[j] = std::sin(static_cast<float>(j) * t);
    const Vector wanted = step(*apart, weights, gradient, 0.1 * t);
    in_place->step(weights, gradient, 0.1 * t, gradient);
    EXPECT_EQ(gradient, wanted);
  }
}

// A checkpoint copies state and scalars into a fresh rule, which then goes on with the same bits.
TEST_P(EveryRule, StateCarriesOver) {
  constexpr std::int64_t kSize = 5;
  const Vector weights = {1, 2, 3, 4, 5};
  const Vector gradient = {5, -4, 3, -2, 1};
  auto old_rule = make({.name = GetParam()}, kSize);
  step(*old_rule, weights, gradient, 0.5);
  auto new_rule = make({.name = GetParam()}, kSize);
  const auto from = old_rule->state();
  const auto to = new_rule->state();
  ASSERT_EQ(from.size(), to.size());
  for (std::size_t s = 0; s < from.size(); ++s) {
    ASSERT_EQ(from[s].second.size(), static_cast<std::size_t>(kSize));
    std::copy(from[s].second.begin(), from[s].second.end(), to[s].second.begin());
  }
  const auto scalars = old_rule->scalars();
  for (std::size_t s = 0; s < scalars.size(); ++s) *new_rule->scalars()[s].second = *scalars[s].second;
  EXPECT_EQ(step(*new_rule, weights, gradient, 0.25), step(*old_rule, weights, gradient, 0.25));
}

TEST_P(EveryRule, WrongLengthsAreRefused) {
  auto rule = make({.name = GetParam()}, 2);
  Vector update(2);
  EXPECT_THROW(rule->step(Vector{1, 2, 3}, Vector{1, 2}, 0.1, update), std::invalid_argument);
  EXPECT_THROW(rule->step(Vector{1, 2}, Vector{1}, 0.1, update), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Names, EveryRule, testing::Values("sgd", "momentum", "nesterov", "adam", "lars"));

TEST(MakeUpdateRule, NamesTheNearest) {
  try {
    make({.name = "nestorov"}, 1);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'nesterov'?"), std::string::npos) << error.what();
  }
}

TEST(MakeUpdateRule, RefusesBadValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(make({.momentum = 1}, 1), UsageError);
  EXPECT_THROW(make({.momentum = nan}, 1), UsageError);
  EXPECT_THROW(make({.weight_decay = -1}, 1), UsageError);
  EXPECT_THROW(make({.trust_ratio = 0}, 1), UsageError);
  EXPECT_THROW(make({.beta1 = 1.5}, 1), UsageError);
  EXPECT_THROW(make({.epsilon = 0}, 1), UsageError);
}

}  // namespace
}  // namespace fluentps
