/// Learning-rate schedules at hand-computed points, and what they refuse.
#include "shard/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "fluentps/error.hpp"

namespace fluentps {
namespace {

std::string refusal(const ScheduleOptions& options) {
  try {
    make_schedule(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Schedule, Constant) {
  const auto schedule = make_schedule({.lr = 0.1});
  EXPECT_DOUBLE_EQ(schedule->at(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule->at(1'000'000), 0.1);
}

// CIFAR-10 ResNet-56: 0.1, x0.1 at 32k and 48k
TEST(Schedule, Multistep) {
  const auto schedule = make_schedule({.spec = "multistep:at=32000+48000,factor=0.1", .lr = 0.1});
  EXPECT_DOUBLE_EQ(schedule->at(31'999), 0.1);
  EXPECT_DOUBLE_EQ(schedule->at(32'000), 0.01);
  EXPECT_DOUBLE_EQ(schedule->at(47'999), 0.01);
  EXPECT_DOUBLE_EQ(schedule->at(48'000), 0.001);
}

// The LARS setting: from 1 to 9 over 10k iterations, then (1-x)^2 to the end.
TEST(Schedule, PolyWithWarmup) {
  const auto schedule = make_schedule(
      {.spec = "poly:power=2", .warmup = "iterations=10000,from=1.0", .lr = 9, .iterations = 30'000, .workers = 8});
  EXPECT_DOUBLE_EQ(schedule->at(0), 1);
  EXPECT_DOUBLE_EQ(schedule->at(5'000), 5);
  EXPECT_DOUBLE_EQ(schedule->at(10'000), 9);
  EXPECT_DOUBLE_EQ(schedule->at(20'000), 9 * 0.25);
  EXPECT_DOUBLE_EQ(schedule->at(30'000), 0);
  EXPECT_DOUBLE_EQ(schedule->at(40'000), 0);
}

TEST(Schedule, CosineToAnEnd) {
  const auto schedule = make_schedule({.spec = "cosine:end=0.2", .lr = 1, .iterations = 100});
  EXPECT_DOUBLE_EQ(schedule->at(0), 1);
  EXPECT_NEAR(schedule->at(50), 0.6, 1e-12);
  EXPECT_NEAR(schedule->at(25), 0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_NEAR(schedule->at(100), 0.2, 1e-12);
}

TEST(Schedule, WarmupStartsAtOneKth) {
  for (const char* warmup : {"iterations=10", "10"}) {
    const auto by_workers = make_schedule({.warmup = warmup, .lr = 0.8, .workers = 4});
    EXPECT_DOUBLE_EQ(by_workers->at(0), 0.2);
    EXPECT_DOUBLE_EQ(by_workers->at(5), 0.5);
    EXPECT_DOUBLE_EQ(by_workers->at(10), 0.8);
  }
  EXPECT_DOUBLE_EQ(make_schedule({.warmup = "iterations=10,k=8", .lr = 0.8})->at(0), 0.1);
  EXPECT_DOUBLE_EQ(make_schedule({.warmup = "iterations=0", .lr = 0.8, .workers = 4})->at(0), 0.8);
}

TEST(Schedule, RefusalsNameTheNearest) {
  EXPECT_NE(refusal({.spec = "cosin"}).find("did you mean 'cosine'?"), std::string::npos);
  EXPECT_NE(refusal({.spec = "poly:powr=2", .iterations = 10}).find("did you mean 'power'?"), std::string::npos);
  EXPECT_NE(refusal({.warmup = "iteration=5"}).find("did you mean 'iterations'?"), std::string::npos);
}

TEST(Schedule, RefusesBadValues) {
  for (const ScheduleOptions& options : std::vector<ScheduleOptions>{
           {.lr = -1},
           {.lr = std::nan("")},
           {.spec = "multistep"},
           {.spec = "multistep:at=20+10"},
           {.spec = "multistep:at=ten"},
           {.spec = "multistep:at=10,10"},
           {.spec = "poly:power=two", .iterations = 10},
           {.spec = "poly"},
           {.spec = "poly", .warmup = "iterations=10", .iterations = 10},
           {.spec = "constant:lr=3"},
           {.spec = ""},
           {.warmup = "iterations=-1"},
           {.warmup = "-1"},
           {.warmup = "iterations=5,k=2,from=0.1"},
           {.warmup = "iterations=5,from=nan"},
       }) {
    EXPECT_NE(refusal(options), "accepted") << options.spec << " / " << options.warmup;
  }
}

}  // namespace
}  // namespace fluentps
