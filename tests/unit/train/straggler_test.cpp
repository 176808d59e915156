/// Who is slowed, by how much, and that it can be repeated.
#include "train/straggler.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "fluentps/error.hpp"

namespace fluentps::train {
namespace {

constexpr std::int64_t kMs = 1'000'000;

std::int64_t sleep_of(const std::string& text, std::uint32_t worker, Iteration i = 0, std::int64_t compute_ns = 0,
                      std::uint64_t seed = 1) {
  return Straggler(text, seed, 16, {worker}).sleep_ns(i, compute_ns);
}

TEST(Straggler, EveryEighth) {
  for (std::uint32_t worker = 0; worker < 16; ++worker) {
    EXPECT_EQ(sleep_of("every=8,mean_ms=30", worker), worker % 8 == 0 ? 30 * kMs : 0) << worker;
  }
}

TEST(Straggler, FactorIsOfTheOwnComputeTime) {
  EXPECT_EQ(sleep_of("worker=2,factor=20", 2, 0, 5 * kMs), 95 * kMs);
  EXPECT_EQ(sleep_of("worker=2,factor=20", 3, 0, 5 * kMs), 0);
  EXPECT_EQ(sleep_of("worker=2,factor=1.3", 2, 0, 10 * kMs), 3 * kMs);
}

TEST(Straggler, PartsAreSummed) {
  const std::string text = "worker=0,mean_ms=5; every=4,mean_ms=2 ;worker=1,factor=2";
  EXPECT_EQ(sleep_of(text, 0, 0, kMs), 7 * kMs);
  EXPECT_EQ(sleep_of(text, 1, 0, kMs), kMs);
  EXPECT_EQ(sleep_of(text, 4, 0, kMs), 2 * kMs);
  EXPECT_EQ(sleep_of(text, 5, 0, kMs), 0);
}

TEST(Straggler, OnlyInItsIterations) {
  const std::string text = "worker=0,mean_ms=5,from=10,until=12";
  for (const Iteration i : {9, 10, 11, 12}) EXPECT_EQ(sleep_of(text, 0, i), i == 10 || i == 11 ? 5 * kMs : 0) << i;
}

// max(0, Normal(30, 10)) over 20,000 draws: standard errors 0.07 and 0.05.
TEST(Straggler, NormalDelays) {
  const Straggler straggler("every=8,mean_ms=30,sdev_ms=10", 1, 16, {8});
  double mean = 0, square = 0;
  constexpr int kTimes = 20'000;
  for (Iteration i = 0; i < kTimes; ++i) {
    const double ms = static_cast<double>(straggler.sleep_ns(i, 0)) / kMs;
    EXPECT_GE(ms, 0);
    mean += ms / kTimes;
    square += ms * ms / kTimes;
  }
  EXPECT_NEAR(mean, 30, 0.35);
  EXPECT_NEAR(std::sqrt(square - mean * mean), 10, 0.25);
}

// E max(0, Normal(0, 10)) = 10 / sqrt(2 pi)
TEST(Straggler, NegativeDelaysAreCut) {
  const Straggler straggler("sdev_ms=10", 1, 16, {3});
  double mean = 0;
  for (Iteration i = 0; i < 20'000; ++i) mean += static_cast<double>(straggler.sleep_ns(i, 0)) / kMs / 20'000;
  EXPECT_NEAR(mean, 3.989, 0.21);
}

TEST(Straggler, IsRepeatableAndDiffersByKey) {
  const std::string text = "mean_ms=30,sdev_ms=10";
  const auto base = sleep_of(text, 3, 7);
  EXPECT_EQ(sleep_of(text, 3, 7), base);
  EXPECT_NE(sleep_of(text, 3, 8), base);
  EXPECT_NE(sleep_of(text, 4, 7), base);
  EXPECT_NE(sleep_of(text, 3, 7, 0, 2), base);
  EXPECT_NE(sleep_of(text + ";" + text, 3, 7), 2 * base) << "two parts draw the same";
}

TEST(Straggler, EmptyIsNobody) {
  EXPECT_FALSE(Straggler("", 1, 4, {0}).active());
  EXPECT_FALSE(Straggler("every=2,mean_ms=1", 1, 4, {1}).active());
  EXPECT_TRUE(Straggler("every=2,mean_ms=1", 1, 4, {2}).active());
}

TEST(Straggler, Refusals) {
  for (const char* bad :
       {"every=0,mean_ms=1", "worker=16,mean_ms=1", "worker=-1,mean_ms=1", "every=8", "mean=30", "every=8,mean_ms=abc",
        "every=2,worker=1,mean_ms=1", "worker=1,factor=0.5", "fast", "every=8,mean_ms=-3", "every=8;;mean_ms=x"}) {
    EXPECT_THROW(sleep_of(bad, 0), UsageError) << bad;
  }
}

}  // namespace
}  // namespace fluentps::train
