/// The training loop on a problem and a server written down here.
#include "train/trainer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../gpu/fake_device.hpp"
#include "fake_clock.hpp"
#include "fluentps/error.hpp"

namespace fluentps::train {
namespace {

/// Batch i has the gradient (3, 4) * scale(i) and the loss i.
class Ramp : public Problem {
 public:
  std::vector<TensorSpec> tensors() const override { return {{"w", {2}}}; }
  void initial_weights(std::span<float> weights) override { std::fill(weights.begin(), weights.end(), 0.0F); }
  double gradient(std::span<const float>, Iteration i, std::span<float> gradient) override {
    batches.push_back(i);
    const auto scale = static_cast<float>(i + 1);
    gradient[0] = 3 * scale;
    gradient[1] = 4 * scale;
    return static_cast<double>(i);
  }
  std::optional<Evaluation> evaluate(std::span<const float>) override { return std::nullopt; }
  Iteration iterations_per_epoch() const override { return 0; }
  std::string description() const override { return "ramp"; }
  std::vector<std::pair<std::string, std::span<float>>> local_state() override { return {{"mean", mean}}; }
  std::vector<Iteration> batches;
  std::vector<float> mean = {7};
};

/// One worker, one server that adds what it gets.
class Recorder : public Worker {
 public:
  explicit Recorder(Iteration first = 0) : next_(first) {}
  WorkerIndex index() const override { return {}; }
  std::uint32_t workers() const override { return 1; }
  std::int64_t parameters() const override { return 2; }
  Iteration iteration() const override { return next_; }
  void initialize(std::span<float> weights) override { weights_.assign(weights.begin(), weights.end()); }
  void push(std::span<const float> update) override {
    pushed.emplace_back(update.begin(), update.end());
    rates.push_back(lr_);
    for (std::size_t j = 0; j < weights_.size(); ++j) weights_[j] += update[j];
    ++next_;
  }
  void pull(std::span<float> weights) override { std::copy(weights_.begin(), weights_.end(), weights.begin()); }
  void push_pull(std::span<const float> update, std::span<float> weights) override {
    push(update);
    pull(weights);
  }
  void set_lr(double lr) override { lr_ = lr; }
  void request_stop() override { ++stop_requests; }
  Iteration stop_at() const override { return stop_requests > 0 ? stop : kNever; }
  const Transfer& last_transfer() const override { return transfer_; }

  std::vector<std::vector<float>> pushed;
  std::vector<double> rates;
  int stop_requests = 0;
  Iteration stop = kNever;

 private:
  Iteration next_;
  double lr_ = 0;
  std::vector<float> weights_;
  Transfer transfer_;
};

TrainerOptions plain_sgd(Iteration iterations) {
  TrainerOptions options;
  options.iterations = iterations;
  options.rule.name = "sgd";
  options.schedule.lr = 1;
  return options;
}

struct Loop {
  FakeClock clock;
  Ramp problem;
  Recorder worker;
};

TEST(Trainer, AccumulatedGradientsAreTheMeanOfTheirBatches) {
  // K = 2: batches 0, 1 have the factors 1 and 2, batches 2, 3 have 3 and 4: means 1.5 and 3.5.
  Loop loop;
  auto options = plain_sgd(2);
  options.grad_accumulate = 2;
  Trainer trainer(options, loop.problem, loop.clock, nullptr, nullptr);
  trainer.run(loop.worker);
  EXPECT_EQ(loop.worker.pushed, (std::vector<std::vector<float>>{{-4.5F, -6}, {-10.5F, -14}}));
  EXPECT_EQ(loop.problem.batches, (std::vector<Iteration>{0, 1, 2, 3}));
  EXPECT_EQ(trainer.totals().last_loss, 2.5);
}

TEST(Trainer, AccumulationEqualsALargerBatch) {
  FakeClock clock;
  const auto weights_after = [&](std::uint32_t batch, std::uint32_t accumulate) {
    ProblemOptions problem;
    problem.model = "softmax";
    problem.dataset = "synthetic:images=512,test=10,classes=10,channels=1,size=28";
    problem.batch_size = batch;
    const auto made = make_problem(problem, clock);
    auto options = plain_sgd(8);
    options.schedule.lr = 0.05;
    options.grad_accumulate = accumulate;
    Recorder worker;
    Trainer(options, *made, clock, nullptr, nullptr).run(worker);
    std::vector<float> sum(worker.pushed[0].size());
    for (const auto& each : worker.pushed)
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += each[j];
    return sum;
  };
  const auto one = weights_after(64, 1);
  const auto four = weights_after(16, 4);
  double largest = 0;
  for (std::size_t j = 0; j < one.size(); ++j) {
    EXPECT_NEAR(four[j], one[j], 1e-5);
    largest = std::max(largest, std::abs(static_cast<double>(one[j])));
  }
  EXPECT_GT(largest, 1e-3);
}

/// As if libtorch had moved to the GPU.
class RampOnGpu : public Ramp {
 public:
  bool move_to_gpu() override { return true; }
};

// Weights, gradients and the optimizer's state on a device whose memory the test can read: the same bits are pushed.
TEST(Trainer, OnADevicePushesTheBitsOfTheHost) {
  auto options = plain_sgd(6);
  options.rule = {.name = "momentum", .weight_decay = 0.1};
  options.schedule.lr = 0.1;
  options.grad_accumulate = 3;
  options.clip_norm = 20;
  Loop host;
  Trainer(options, host.problem, host.clock, nullptr, nullptr).run(host.worker);
  test::FakeDevice device({.host_accessible = true});
  options.device = &device;
  FakeClock clock;
  RampOnGpu problem;
  Recorder worker;
  {
    Trainer trainer(options, problem, clock, nullptr, nullptr);
    trainer.run(worker);
    EXPECT_EQ(trainer.state().arrays.front().first, "momentum/velocity");
    EXPECT_FALSE(device.owns(trainer.state().arrays.front().second.data()));
  }
  EXPECT_EQ(worker.pushed, host.worker.pushed);
  EXPECT_FALSE(device.log().empty());
  EXPECT_EQ(device.unreturned(), 0U);
}

// A problem that stays on the CPU keeps its buffers there.
TEST(Trainer, AProblemWithoutGpuStaysOnTheHost) {
  Loop loop;
  test::FakeDevice device;
  auto options = plain_sgd(2);
  options.device = &device;
  Trainer(options, loop.problem, loop.clock, nullptr, nullptr).run(loop.worker);
  EXPECT_TRUE(device.log().empty());
}

TEST(Trainer, LongGradientsAreClippedShortOnesAreNot) {
  // Norms 5 and 10 at a limit of 5: the second is halved.
  Loop loop;
  auto options = plain_sgd(2);
  options.clip_norm = 5;
  Trainer(options, loop.problem, loop.clock, nullptr, nullptr).run(loop.worker);
  ASSERT_EQ(loop.worker.pushed.size(), 2U);
  EXPECT_EQ(loop.worker.pushed[0], (std::vector<float>{-3, -4}));
  EXPECT_NEAR(loop.worker.pushed[1][0], -3, 1e-6);
  EXPECT_NEAR(loop.worker.pushed[1][1], -4, 1e-6);
}

TEST(Trainer, ForAnOptimizerOnTheServerTheGradientAndItsLearningRateGoOut) {
  Loop loop;
  auto options = plain_sgd(3);
  options.optimizer_at_server = true;
  options.rule.name = "momentum";
  options.schedule = {.spec = "multistep:at=2,factor=0.1", .lr = 0.5};
  Trainer trainer(options, loop.problem, loop.clock, nullptr, nullptr);
  trainer.run(loop.worker);
  EXPECT_EQ(loop.worker.pushed[1], (std::vector<float>{6, 8}));
  EXPECT_EQ(loop.worker.rates, (std::vector<double>{0.5, 0.5, 0.05}));
  ASSERT_EQ(trainer.state().arrays.size(), 1U) << "no optimizer's state here";
  EXPECT_EQ(trainer.state().arrays[0].first, "local/mean");
}

TEST(Trainer, SavesWhenDueAndGoesOnFromACheckpoint) {
  Loop loop;
  auto options = plain_sgd(10);
  options.rule.name = "momentum";
  options.rule.momentum = 0.5;
  Trainer trainer(options, loop.problem, loop.clock, nullptr, nullptr);
  std::vector<std::size_t> saved_after;
  std::vector<float> velocity;
  TrainerCheckpoints checkpoints;
  checkpoints.every = 4;
  checkpoints.save = [&](const State& state) {
    saved_after.push_back(loop.worker.pushed.size());
    EXPECT_EQ(state.arrays[0].first, "momentum/velocity");
    EXPECT_EQ(state.arrays[1].first, "local/mean");
    if (velocity.empty()) velocity.assign(state.arrays[0].second.begin(), state.arrays[0].second.end());
  };
  trainer.set_checkpoints(checkpoints);
  trainer.run(loop.worker);
  EXPECT_EQ(saved_after, (std::vector<std::size_t>{4, 8}));

  Ramp problem;
  Recorder worker(4);
  Trainer resumed(options, problem, loop.clock, nullptr, nullptr);
  checkpoints.save = nullptr;
  checkpoints.restore = [&](const State& state) {
    std::copy(velocity.begin(), velocity.end(), state.arrays[0].second.begin());
  };
  resumed.set_checkpoints(checkpoints);
  resumed.run(worker);
  EXPECT_EQ(problem.batches, (std::vector<Iteration>{4, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(std::equal(worker.pushed.begin(), worker.pushed.end(), loop.worker.pushed.begin() + 4));
}

TEST(Trainer, StopsWhereAllWorkersStop) {
  Loop loop;
  loop.worker.stop = 6;
  Trainer trainer(plain_sgd(10), loop.problem, loop.clock, nullptr, nullptr);
  TrainerCheckpoints checkpoints;
  std::size_t saved_after = 0;
  checkpoints.save = [&](const State&) { saved_after = loop.worker.pushed.size(); };
  checkpoints.stop_wanted = [&] { return loop.worker.pushed.size() >= 3; };
  trainer.set_checkpoints(checkpoints);
  trainer.run(loop.worker);
  EXPECT_EQ(loop.worker.pushed.size(), 6U);
  EXPECT_EQ(saved_after, 6U);
  EXPECT_TRUE(trainer.totals().stopped);
}

TEST(Trainer, AStopAtTheEndIsTheEnd) {
  Loop loop;
  loop.worker.stop = 10;
  Trainer trainer(plain_sgd(10), loop.problem, loop.clock, nullptr, nullptr);
  TrainerCheckpoints checkpoints;
  checkpoints.save = [](const State&) { FAIL(); };
  checkpoints.stop_wanted = [] { return true; };
  trainer.set_checkpoints(checkpoints);
  trainer.run(loop.worker);
  EXPECT_FALSE(trainer.totals().stopped);
}

TEST(Trainer, BadOptionsAreRefused) {
  Loop loop;
  auto options = plain_sgd(1);
  options.clip_norm = -1;
  EXPECT_THROW(Trainer(options, loop.problem, loop.clock, nullptr, nullptr), UsageError);
  options = plain_sgd(1);
  options.grad_accumulate = 0;
  EXPECT_THROW(Trainer(options, loop.problem, loop.clock, nullptr, nullptr), UsageError);
}

}  // namespace
}  // namespace fluentps::train
