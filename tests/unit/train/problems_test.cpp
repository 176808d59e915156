/// The problems without libtorch: quadratic and synthetic, and the choice by name.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "fake_clock.hpp"
#include "fluentps/error.hpp"
#include "train/problem.hpp"

namespace fluentps::train {
namespace {

std::string refusal(const ProblemOptions& options) {
  FakeClock clock;
  try {
    make_problem(options, clock);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

ProblemOptions for_model(const std::string& model) {
  ProblemOptions options;
  options.model = model;
  return options;
}

// a = (1, 1/4) for condition 4. From the gradient at 0, -a w*, follows w*; f(0) = 1/2 sum a w*^2, f(w*) = 0.
TEST(Quadratic, IsTheFormula) {
  FakeClock clock;
  const auto problem = make_problem(for_model("quadratic:params=2,noise=0,condition=4"), clock);
  std::vector<float> w(2), g(2);
  problem->initial_weights(w);
  EXPECT_EQ(w, (std::vector<float>{0, 0}));
  const double loss = problem->gradient(w, 0, g);
  const double optimum0 = -g[0], optimum1 = -4.0 * g[1];
  EXPECT_GT(std::abs(optimum0), 1e-3);
  EXPECT_NEAR(loss, 0.5 * (optimum0 * optimum0 + 0.25 * optimum1 * optimum1), 1e-6);
  EXPECT_NEAR(problem->evaluate(w)->loss, loss, 1e-12);
  EXPECT_TRUE(std::isnan(problem->evaluate(w)->accuracy));
  w = {static_cast<float>(optimum0), static_cast<float>(optimum1)};
  EXPECT_NEAR(problem->evaluate(w)->loss, 0, 1e-12);
  EXPECT_NEAR(problem->gradient(w, 1, g), 0, 1e-12);
}

TEST(Quadratic, NoiseIsOfTheRightSizeAndByWorkerAndIteration) {
  FakeClock clock;
  auto options = for_model("quadratic:params=10k,noise=2,condition=1");
  options.batch_size = 16;
  options.workers = 2;
  auto quiet = for_model("quadratic:params=10k,noise=0,condition=1");
  std::vector<float> w(10'000), exact(w), a(w), b(w), c(w), again(w);
  make_problem(quiet, clock)->gradient(w, 0, exact);
  const auto problem = make_problem(options, clock);
  problem->gradient(w, 0, a);
  problem->gradient(w, 1, b);
  problem->gradient(w, 0, again);
  options.worker = {1};
  make_problem(options, clock)->gradient(w, 0, c);
  EXPECT_EQ(a, again);
  double mean = 0, square = 0, cross = 0, cross_worker = 0;
  for (std::size_t j = 0; j < w.size(); ++j) {
    const double noise = a[j] - exact[j];
    mean += noise / 1e4;
    square += noise * noise / 1e4;
    cross += noise * (b[j] - exact[j]) / 1e4;
    cross_worker += noise * (c[j] - exact[j]) / 1e4;
  }
  // 2/sqrt(16) = 0.5; the standard errors are 0.005, 0.0035 and 0.0025
  EXPECT_NEAR(mean, 0, 0.025);
  EXPECT_NEAR(square, 0.25, 0.0175);
  EXPECT_NEAR(cross, 0, 0.0125);
  EXPECT_NEAR(cross_worker, 0, 0.0125);
}

TEST(Quadratic, StartsAlikeOnEveryWorker) {
  FakeClock clock;
  auto options = for_model("quadratic:noise=0");
  options.workers = 8;
  std::vector<float> w(1'000), first(w), last(w);
  make_problem(options, clock)->gradient(w, 0, first);
  options.worker = {7};
  make_problem(options, clock)->gradient(w, 0, last);
  EXPECT_EQ(first, last);
}

TEST(Synthetic, SleepsAndDoesNotTouchTheBufferTwice) {
  FakeClock clock;
  const auto problem = make_problem(for_model("synthetic:params=3,compute_ms=30"), clock);
  std::vector<float> w(3), g(3);
  problem->gradient(w, 0, g);
  EXPECT_EQ(clock.now_ns(), 30'000'000);
  EXPECT_EQ(g, (std::vector<float>{1e-6F, 1e-6F, 1e-6F}));
  g[1] = 5;
  problem->gradient(w, 1, g);
  EXPECT_EQ(g[1], 5) << "a pass over the gradient in every iteration";
  EXPECT_EQ(clock.now_ns(), 60'000'000);
  EXPECT_FALSE(problem->evaluate(w).has_value());
  EXPECT_EQ(problem->iterations_per_epoch(), 0);
}

// Scaled in place by 0.1 a hundred times, it would sink to 0 through the slow denormals.
TEST(Synthetic, GradientIsRestoredWhenTheCallerChangesIt) {
  FakeClock clock;
  const auto problem = make_problem(for_model("synthetic:params=1k"), clock);
  std::vector<float> w(1'000), g(1'000);
  for (Iteration i = 0; i < 100; ++i) {
    problem->gradient(w, i, g);
    EXPECT_EQ(g[500], 1e-6F);
    for (auto& value : g) value *= 0.1F;
  }
}

TEST(Synthetic, CostsNearlyNothingWithoutSleep) {
  FakeClock clock;
  const auto problem = make_problem(for_model("synthetic:params=1M,compute_ms=0"), clock);
  std::vector<float> w(1'000'000), g(w);
  problem->gradient(w, 0, g);
  const auto begin = std::chrono::steady_clock::now();
  for (Iteration i = 0; i < 10'000; ++i) problem->gradient(w, i, g);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(seconds.count(), 0.2);  // a pass over 4 MB takes 0.1 ms and more: 1 s
  EXPECT_EQ(clock.now_ns(), 0);
}

TEST(Synthetic, JitterHasMeanAndDeviation) {
  FakeClock clock;
  const auto problem = make_problem(for_model("synthetic:params=1,compute_ms=30,sdev_ms=3"), clock);
  std::vector<float> w(1), g(1);
  double square = 0;
  constexpr int kTimes = 10'000;
  for (Iteration i = 0; i < kTimes; ++i) {
    const auto before = clock.now_ns();
    problem->gradient(w, i, g);
    square += std::pow(static_cast<double>(clock.now_ns() - before) / 1e6 - 30, 2) / kTimes;
  }
  EXPECT_NEAR(static_cast<double>(clock.now_ns()) / 1e6 / kTimes, 30, 0.15);  // 5 standard errors of 0.03
  EXPECT_NEAR(std::sqrt(square), 3, 0.11);
}

TEST(Synthetic, TakesTheSizesOfANetwork) {
  FakeClock clock;
  const auto tensors = make_problem(for_model("synthetic:resnet56,compute_ms=1"), clock)->tensors();
  std::int64_t n = 0;
  for (const auto& tensor : tensors) n += tensor.size();
  EXPECT_EQ(n, 853'018);
}

TEST(MakeProblem, Refusals) {
  EXPECT_NE(refusal(for_model("lenett")).find("did you mean 'lenet'?"), std::string::npos);
  EXPECT_NE(refusal(for_model("synthetic:resnet65")).find("Valid: softmax"), std::string::npos);
  for (const char* bad : {"", "synthetic:params=0", "synthetic:params=-1", "synthetic:params=61m", "quadratic:param=3",
                          "quadratic:noise=nan", "synthetic:resnet56,params=3", "lenet:x=1", "synthetic:a,b",
                          "torchscript:/nonexistent.pt"}) {
    EXPECT_NE(refusal(for_model(bad)), "accepted") << bad;
  }
  auto options = for_model("quadratic");
  options.batch_size = 0;
  EXPECT_NE(refusal(options), "accepted");
  options = for_model("quadratic");
  options.worker = {1};
  EXPECT_NE(refusal(options), "accepted");
}

}  // namespace
}  // namespace fluentps::train
