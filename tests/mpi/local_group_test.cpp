/// Local groups of two: on 5 ranks workers {0, 1} and {2}, on 6 ranks {0, 1} and {2, 3}, on 2 ranks {0}.
#include <algorithm>
#include <string>
#include <vector>

#include "fluentps/error.hpp"
#include "fluentps/session.hpp"
#include "mpi_test.hpp"

namespace fluentps::test {

const char* const kRanks = "2 5 6";

namespace {

constexpr std::int64_t kSize = 5000;

class LocalGroupTest : public MpiTest, public ::testing::WithParamInterface<const char*> {
 protected:
  SessionOptions options(const std::string& sync) const {
    SessionOptions options;
    options.servers = servers();
    options.sync = sync;
    options.transport = GetParam();
    options.tensors = {{"a", {kSize}}};
    options.chunk_kib = 4;
    options.local_group = "size=2";
    return options;
  }
};

bool leads(const Worker& worker) { return worker.index().value % 2 == 0; }

TEST_P(LocalGroupTest, EveryWorkerStartsFromWorkerZeroesWeights) {
  Session session(MPI_COMM_WORLD, options("asp"));
  EXPECT_EQ(session.groups(), (session.workers() + 1) / 2);
  session.run([&](Worker& worker) {
    std::vector<float> w(kSize);
    for (std::size_t j = 0; j < w.size(); ++j) w[j] = static_cast<float>(j) + (worker.index().value == 0 ? 0.0F : 1e6F);
    worker.initialize(w);
    for (std::size_t j = 0; j < w.size(); ++j) ASSERT_EQ(w[j], static_cast<float>(j));
  });
}

TEST_P(LocalGroupTest, BspAddsTheMeanOverAllWorkersWhateverTheirGroups) {
  // Worker k pushes (k+1)*(i+1) everywhere: iteration i adds the mean of 1..N, times i+1.
  for (const bool in_one_call : {true, false}) {
    Session session(MPI_COMM_WORLD, options("bsp"));
    session.run([&](Worker& worker) {
      std::vector<float> w(kSize, 0.0F);
      std::vector<float> update(w.size());
      worker.initialize(w);
      const float mean = (static_cast<float>(worker.workers()) + 1) / 2;
      float expected = 0;
      for (int i = 0; i < 10; ++i) {
        std::fill(update.begin(), update.end(), static_cast<float>((worker.index().value + 1) * (i + 1)));
        if (in_one_call) {
          worker.push_pull(update, w);
        } else {
          worker.push(update);
          worker.pull(w);
        }
        expected += mean * static_cast<float>(i + 1);
        for (const float each : w) ASSERT_NEAR(each, expected, 1e-6F * expected) << "iteration " << i;
        EXPECT_EQ(worker.last_transfer().bytes, leads(worker) ? 2 * 4 * kSize : 0);
      }
      EXPECT_EQ(worker.iteration(), 10);
    });
    EXPECT_EQ(session.statistics().pushes, session.is_server() ? 10 * session.groups() : 0);
  }
}

TEST_P(LocalGroupTest, EachUpdateWeighsOneNthInAsynchronousModels) {
  for (const char* sync : {"asp", "ssp:s=2", "pssp:s=1,c=0.5"}) {
    Session session(MPI_COMM_WORLD, options(sync));
    session.run([&](Worker& worker) {
      std::vector<float> w(kSize, 0.0F);
      const std::vector<float> update(w.size(), static_cast<float>(worker.index().value + 1));
      worker.initialize(w);
      for (int i = 0; i < 30; ++i) worker.push_pull(update, w);
    });
    const auto weights = session.gather_weights();
    if (weights.empty()) continue;
    const float expected = 30 * (static_cast<float>(session.workers()) + 1) / 2;
    for (const float each : weights) ASSERT_NEAR(each, expected, 1e-5F * expected) << sync;
  }
}

TEST_P(LocalGroupTest, AServersOptimizerStepsOnTheMeanGradient) {
  // Gradients 1..N, momentum 1/2, lr 1/4, from 0: velocities m, 1.5 m, with the mean m = (N+1)/2.
  auto given = options("bsp");
  given.server_optimizer.emplace();
  given.server_optimizer->name = "momentum";
  given.server_optimizer->momentum = 0.5;
  Session session(MPI_COMM_WORLD, given);
  session.run([&](Worker& worker) {
    std::vector<float> w(kSize, 0.0F);
    const std::vector<float> gradient(w.size(), static_cast<float>(worker.index().value + 1));
    worker.initialize(w);
    worker.set_lr(0.25);
    for (int i = 0; i < 2; ++i) worker.push_pull(gradient, w);
    const float mean = (static_cast<float>(worker.workers()) + 1) / 2;
    for (const float each : w) ASSERT_NEAR(each, -0.25F * (1 + 1.5F) * mean, 1e-6F * mean);
  });
}

TEST_P(LocalGroupTest, AStopAskedForByAMemberReachesAllGroups) {
  Session session(MPI_COMM_WORLD, options("asp"));
  Iteration reached = -1;
  session.run([&](Worker& worker) {
    std::vector<float> w(kSize, 0.0F);
    worker.initialize(w);
    while (worker.stop_at() != worker.iteration()) {
      ASSERT_LT(worker.iteration(), 1'000'000);
      worker.push_pull(std::vector<float>(w.size(), 1.0F), w);
      const auto asks = worker.workers() == 1 ? 0U : 1U;  // no leader, where there is another
      if (worker.index().value == asks && worker.iteration() == 20) worker.request_stop();
    }
    reached = worker.iteration();
  });
  Iteration most = 0;
  MPI_Allreduce(&reached, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  EXPECT_GE(most, 20);
  if (reached >= 0) {
    EXPECT_EQ(reached, most);
  }
}

TEST_P(LocalGroupTest, MembersWithOtherIterationsAreRefusedOnAllRanks) {
  for (const bool same_in_group : {true, false}) {
    auto given = options("ssp:s=2");
    std::uint32_t own = 0;
    given.prepare = [&own](WorkerIndex index, std::uint32_t) {
      own = index.value;
      return std::vector<TensorSpec>{{"a", {kSize}}};
    };
    given.iterations = [&] { return same_in_group ? 10 + 2 * (own / 2) : 10 + 2 * own; };
    std::string text;
    try {
      Session session(MPI_COMM_WORLD, given);
      session.run([&](Worker& worker) {
        std::vector<float> w(kSize, 0.0F);
        worker.initialize(w);
        const auto end = static_cast<Iteration>(given.iterations());
        while (worker.iteration() < end) worker.push_pull(std::vector<float>(w.size(), 1.0F), w);
      });
    } catch (const UsageError& error) {
      text = error.what();
    }
    if (same_in_group || ranks() == 2)
      EXPECT_EQ(text, "");
    else
      EXPECT_NE(text.find("worker 1 makes 12 iterations and worker 0 of the same local group 10"), std::string::npos)
          << text;
  }
}

TEST_P(LocalGroupTest, MisuseIsRefusedByNameOnEveryMember) {
  Session session(MPI_COMM_WORLD, options("asp"));
  session.run([&](Worker& worker) {
    std::vector<float> w(kSize, 0.0F);
    std::vector<float> short_one(kSize - 1, 0.0F);
    EXPECT_THROW(worker.push(w), UsageError) << "push before initialize";
    worker.initialize(w);
    EXPECT_THROW(worker.push(short_one), UsageError);
    EXPECT_THROW(worker.pull(short_one), UsageError);
    EXPECT_THROW(worker.push_pull(w, w), UsageError) << "overlapping buffers";
    EXPECT_THROW(worker.initialize(w), UsageError);
  });
}

TEST_P(LocalGroupTest, AnUnknownRuleIsRefused) {
  auto bad = options("asp");
  bad.local_group = "rack";
  EXPECT_THROW(Session(MPI_COMM_WORLD, bad), UsageError);
}

INSTANTIATE_TEST_SUITE_P(Transports, LocalGroupTest, ::testing::Values("rma", "p2p"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fluentps::test
