/// Training through the parameter server against a plain loop in one process, which knows nothing of servers.
#include <algorithm>
#include <cmath>
#include <vector>

#include "fluentps/session.hpp"
#include "mpi_test.hpp"
#include "net/mpi_clock.hpp"
#include "train/trainer.hpp"

namespace fluentps::test {

const char* const kRanks = "2 5";

namespace {

constexpr Iteration kIterations = 50;
constexpr std::uint32_t kGlobalBatch = 96;

class TrainingTest : public MpiTest, public ::testing::WithParamInterface<const char*> {};

train::ProblemOptions problem_options(const std::string& model, WorkerIndex worker, std::uint32_t workers) {
  train::ProblemOptions options;
  options.model = model;
  options.batch_size = kGlobalBatch / workers;
  options.workers = workers;
  options.worker = worker;
  return options;
}

/// w -= lr * g on the whole global batch, in double: no optimizer, no schedule, no server of ours.
std::vector<float> plain_sgd(const std::string& model, double lr, Clock& clock) {
  auto problem = train::make_problem(problem_options(model, WorkerIndex{0}, 1), clock);
  std::int64_t n = 0;
  for (const auto& each : problem->tensors()) n += each.size();
  std::vector<float> weights(static_cast<std::size_t>(n));
  std::vector<float> gradient(weights.size());
  problem->initial_weights(weights);
  for (Iteration i = 0; i < kIterations; ++i) {
    problem->gradient(weights, i, gradient);
    for (std::size_t j = 0; j < weights.size(); ++j)
      weights[j] = static_cast<float>(static_cast<double>(weights[j]) - lr * static_cast<double>(gradient[j]));
  }
  return weights;
}

TEST_P(TrainingTest, BspEqualsAPlainLoop) {
  // A step size at which rounding is not yet amplified by the kinks of ReLU and max pooling within 50 iterations.
  const double lr = 0.002;
  MpiClock clock;
  std::unique_ptr<train::Problem> problem;
  SessionOptions options;
  options.servers = servers();
  options.sync = "bsp";
  options.prepare = [&](WorkerIndex worker, std::uint32_t workers) {
    problem = train::make_problem(problem_options(GetParam(), worker, workers), clock);
    return problem->tensors();
  };
  Session session(MPI_COMM_WORLD, options);
  session.run([&](Worker& worker) {
    train::TrainerOptions settings;
    settings.iterations = kIterations;
    settings.rule.name = "sgd";
    settings.schedule.lr = lr;
    settings.worker = worker.index();
    settings.workers = worker.workers();
    train::Trainer(settings, *problem, clock, nullptr, nullptr).run(worker);
  });
  const auto trained = session.gather_weights();
  if (trained.empty()) return;
  const auto expected = plain_sgd(GetParam(), lr, clock);
  ASSERT_EQ(trained.size(), expected.size());
  double difference = 0;
  double size = 0;
  for (std::size_t j = 0; j < expected.size(); ++j) {
    difference += std::pow(static_cast<double>(trained[j]) - expected[j], 2);
    size += std::pow(static_cast<double>(expected[j]), 2);
  }
  EXPECT_LT(std::sqrt(difference / size), 1e-4);
}

/// The gradient 1 everywhere, but not a number on worker 1 in iteration 2.
class SpoiltProblem : public train::Problem {
 public:
  explicit SpoiltProblem(WorkerIndex worker) : worker_(worker) {}
  std::vector<TensorSpec> tensors() const override { return {{"w", {1000}}}; }
  void initial_weights(std::span<float> weights) override { std::fill(weights.begin(), weights.end(), 0.0F); }
  double gradient(std::span<const float>, Iteration i, std::span<float> gradient) override {
    std::fill(gradient.begin(), gradient.end(), worker_.value == 1 && i == 2 ? std::nanf("") : 1.0F);
    return 1;
  }
  std::optional<train::Evaluation> evaluate(std::span<const float>) override { return std::nullopt; }
  Iteration iterations_per_epoch() const override { return 0; }
  std::string description() const override { return "spoilt"; }

 private:
  WorkerIndex worker_;
};

class SkippingTest : public MpiTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(SkippingTest, AGradientThatIsNotFiniteCostsItsWorkersShareOnly) {
  // Each of N workers moves the weights by -1/4 an iteration, N-th by N-th; in iteration 2 worker 1 moves nothing. So
  // it is in a local group too, whose other member's update counts.
  SessionOptions options;
  options.servers = servers();
  options.sync = "bsp";
  options.tensors = {{"w", {1000}}};
  options.local_group = GetParam();
  Session session(MPI_COMM_WORLD, options);
  MpiClock clock;
  session.run([&](Worker& worker) {
    SpoiltProblem problem(worker.index());
    train::TrainerOptions settings;
    settings.iterations = 5;
    settings.schedule.lr = 0.25;
    settings.skip_nonfinite = true;
    settings.worker = worker.index();
    settings.workers = worker.workers();
    train::Trainer trainer(settings, problem, clock, nullptr, nullptr);
    trainer.run(worker);
    EXPECT_EQ(trainer.totals().skipped, worker.index().value == 1 ? 1 : 0);
  });
  const float missing = session.workers() > 1 ? 0.25F / static_cast<float>(session.workers()) : 0;
  for (const float each : session.gather_weights()) ASSERT_NEAR(each, -5 * 0.25F + missing, 1e-6F);
}

INSTANTIATE_TEST_SUITE_P(Groups, SkippingTest, ::testing::Values("none", "size=2"));

INSTANTIATE_TEST_SUITE_P(Models, TrainingTest, ::testing::Values("softmax", "lenet"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fluentps::test
