/// Compute times that are given instead of measured.
#include "train/compute_model.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "fluentps/error.hpp"

namespace fluentps::train {
namespace {

TEST(ComputeModel, IsOffWithoutText) { EXPECT_FALSE(ComputeModel("", 1, WorkerIndex{0}).active()); }

TEST(ComputeModel, ConstantIsConstant) {
  const ComputeModel model("constant:ms=2.5", 1, WorkerIndex{3});
  EXPECT_TRUE(model.active());
  for (const Iteration i : {0, 1, 1000}) EXPECT_EQ(model.compute_ns(i), 2'500'000);
}

TEST(ComputeModel, NormalHasMeanAndDeviation) {
  const ComputeModel model("normal:mean=30,sdev=5", 7, WorkerIndex{2});
  constexpr int kDraws = 20'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double ms = static_cast<double>(model.compute_ns(i)) * 1e-6;
    sum += ms;
    squares += ms * ms;
  }
  const double mean = sum / kDraws;
  // Standard errors: 5 / sqrt(20000) = 0.035 of the mean, 0.025 of the deviation; four of them.
  EXPECT_NEAR(mean, 30, 0.15);
  EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean), 5, 0.1);
}

TEST(ComputeModel, DrawsDependOnSeedWorkerAndIterationAlone) {
  const ComputeModel one("normal:mean=30,sdev=5", 7, WorkerIndex{2});
  const ComputeModel same("normal:mean=30,sdev=5", 7, WorkerIndex{2});
  EXPECT_EQ(one.compute_ns(4), same.compute_ns(4));
  EXPECT_NE(one.compute_ns(4), one.compute_ns(5));
  EXPECT_NE(one.compute_ns(4), ComputeModel("normal:mean=30,sdev=5", 8, WorkerIndex{2}).compute_ns(4));
  EXPECT_NE(one.compute_ns(4), ComputeModel("normal:mean=30,sdev=5", 7, WorkerIndex{3}).compute_ns(4));
}

TEST(ComputeModel, IsNeverNegative) {
  const ComputeModel model("normal:mean=1,sdev=50", 1, WorkerIndex{0});
  for (Iteration i = 0; i < 100; ++i) EXPECT_GE(model.compute_ns(i), 0);
}

TEST(ComputeModel, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"constant:s=3", "gauss:mean=3", "normal:mean=-1", "constant:30", "trace:/nowhere"})
    EXPECT_THROW(ComputeModel(text, 1, WorkerIndex{0}), UsageError) << text;
}

}  // namespace
}  // namespace fluentps::train
