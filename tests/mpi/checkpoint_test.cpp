/// Checkpoints and stops as a program that links the library uses them, over both transports.
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fluentps/error.hpp"
#include "fluentps/session.hpp"
#include "mpi_test.hpp"

namespace fluentps::test {

const char* const kRanks = "2 5";

namespace {

constexpr std::size_t kSize = 5000;

class CheckpointTest : public MpiTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    MpiTest::SetUp();
    int id = ::getpid();
    MPI_Bcast(&id, 1, MPI_INT, 0, MPI_COMM_WORLD);
    folder_ = std::filesystem::temp_directory_path() / ("fluentps-mpi-checkpoint-" + std::to_string(id));
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) std::filesystem::remove_all(folder_);
    MpiTest::TearDown();
  }

  SessionOptions options(const std::string& sync, std::uint32_t servers) const {
    SessionOptions options;
    options.servers = servers;
    options.sync = sync;
    options.transport = GetParam();
    options.tensors = {{"a", {3000}}, {"b", {2000}}};
    options.chunk_kib = 4;
    options.checkpoint_dir = folder_;
    options.server_optimizer.emplace();
    options.server_optimizer->name = "momentum";
    options.server_optimizer->momentum = 0.5;
    return options;
  }

  std::string folder_;
};

/// Pushes the gradient 1 until iteration `end`; a number of the worker's own counts along.
std::vector<float> train(Session& session, Iteration end, Iteration checkpoint_at, double* count) {
  std::vector<float> weights(kSize, 1.0F);
  const std::vector<float> gradient(kSize, 1.0F);
  session.run([&](Worker& worker) {
    const State own{{}, {{"count", count}}};
    worker.initialize(weights);
    session.restore(own);
    worker.set_lr(0.25);
    while (worker.iteration() < end) {
      worker.push_pull(gradient, weights);
      *count += 1;
      if (worker.iteration() == checkpoint_at) session.checkpoint(own);
    }
  });
  return weights;
}

TEST_P(CheckpointTest, AResumedSessionGoesOnWithItsOptimizer) {
  // lr 1/4, momentum 1/2, gradient 1 from weights of 1: velocities 1, 1.5, 1.75, 1.875, all exact in binary.
  double count = 0;
  {
    Session first(MPI_COMM_WORLD, options("bsp", servers()));
    EXPECT_EQ(first.first_iteration(), 0);
    train(first, 3, 2, &count);
  }
  auto again = options("bsp", ranks() == 5 ? 3 : 1);  // fewer workers, more servers
  again.resume = folder_;
  Session second(MPI_COMM_WORLD, again);
  EXPECT_EQ(second.first_iteration(), 2);
  count = 0;
  const auto weights = train(second, 4, -1, &count);
  if (second.is_server()) return;
  EXPECT_EQ(count, 4) << "2 of the checkpoint, 2 since";
  for (const float each : weights) ASSERT_EQ(each, 1 - 0.25F * (1 + 1.5F + 1.75F + 1.875F));
}

TEST_P(CheckpointTest, AStopReachesWorkersThatAreApart) {
  // Worker 0 asks after 20 iterations, while nothing holds the others back.
  Session session(MPI_COMM_WORLD, options("asp", servers()));
  Iteration reached = -1;
  session.run([&](Worker& worker) {
    std::vector<float> weights(kSize, 0.0F);
    const std::vector<float> gradient(kSize, 1.0F);
    worker.initialize(weights);
    while (worker.stop_at() != worker.iteration()) {
      ASSERT_LT(worker.iteration(), 1'000'000);
      worker.push_pull(gradient, weights);
      if (worker.index().value == 0 && worker.iteration() == 20) worker.request_stop();
    }
    reached = worker.iteration();
    session.checkpoint({});
  });
  Iteration most = 0;
  MPI_Allreduce(&reached, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_GE(most, 20);
  if (reached >= 0) {
    EXPECT_EQ(reached, most);
  }
}

TEST_P(CheckpointTest, OtherTensorsAreRefused) {
  double count = 0;
  {
    Session first(MPI_COMM_WORLD, options("bsp", servers()));
    train(first, 2, 2, &count);
  }
  auto again = options("bsp", servers());
  again.resume = folder_;
  again.tensors = {{"a", {3000}}, {"b", {2001}}};
  EXPECT_THROW(Session(MPI_COMM_WORLD, again), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Transports, CheckpointTest, ::testing::Values("rma", "p2p"));

}  // namespace
}  // namespace fluentps::test
