/// Training through the parameter server against a plain loop in one process, which knows nothing of servers.
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

INSTANTIATE_TEST_SUITE_P(Models, TrainingTest, ::testing::Values("softmax", "lenet"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fluentps::test
