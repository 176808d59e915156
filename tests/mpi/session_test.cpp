/// Servers and workers over real MPI, both transports, 1+1 and 2+3 ranks.
#include "fluentps/session.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fluentps/error.hpp"
#include "mpi_test.hpp"

namespace fluentps::test {

const char* const kRanks = "2 5";

namespace {

class SessionTest : public MpiTest, public ::testing::WithParamInterface<const char*> {
 protected:
  SessionOptions options(const std::string& sync, std::int64_t parameters) const {
    SessionOptions options;
    options.servers = servers();
    options.sync = sync;
    options.transport = GetParam();
    options.tensors = {{"a", {parameters / 3}}, {"b", {parameters - parameters / 3}}};
    options.chunk_kib = 4;  // 1024 elements: several chunks even for small shards
    return options;
  }
};

TEST_P(SessionTest, EveryWorkerStartsFromWorkerZeroesWeights) {
  for (const std::int64_t n : {5, 1000, 20011}) {
    Session session(MPI_COMM_WORLD, options("asp", n));
    session.run([&](Worker& worker) {
      std::vector<float> w(static_cast<std::size_t>(n));
      for (std::size_t j = 0; j < w.size(); ++j)
        w[j] = static_cast<float>(j) + (worker.index().value == 0 ? 0.0F : 1e6F);
      worker.initialize(w);
      for (std::size_t j = 0; j < w.size(); ++j) ASSERT_EQ(w[j], static_cast<float>(j));
    });
  }
}

TEST_P(SessionTest, BspAddsTheMeanOfAllUpdates) {
  // Worker k pushes (k+1)*(i+1) everywhere: after iterations 0..9 the weights are sum over i of mean_k (k+1)(i+1).
  for (const std::int64_t n : {5, 1000, 20011}) {
    Session session(MPI_COMM_WORLD, options("bsp", n));
    session.run([&](Worker& worker) {
      std::vector<float> w(static_cast<std::size_t>(n), 0.0F);
      std::vector<float> update(w.size());
      worker.initialize(w);
      const float mean = (static_cast<float>(worker.workers()) + 1) / 2;
      float expected = 0;
      for (int i = 0; i < 10; ++i) {
        std::fill(update.begin(), update.end(), static_cast<float>((worker.index().value + 1) * (i + 1)));
        worker.push_pull(update, w);
        expected += mean * static_cast<float>(i + 1);
        for (const float each : w) ASSERT_NEAR(each, expected, 1e-3F) << "iteration " << i;
      }
    });
  }
}

TEST_P(SessionTest, APullIncludesTheOwnPushesInEveryModel) {
  // Worker k adds 1 to element k only, so that what it reads there is its own doing alone: iterations / N.
  for (const char* sync : {"bsp", "asp", "ssp:s=0", "ssp:s=2", "pssp:s=1,c=0.5", "pssp:s=2,alpha=0.8", "psp:beta=1,s=1",
                           "dssp:low=1,high=3", "partial:fraction=0.5"}) {
    for (const std::int64_t n : {32, 5000}) {
      Session session(MPI_COMM_WORLD, options(sync, n));
      session.run([&](Worker& worker) {
        std::vector<float> w(static_cast<std::size_t>(n), 0.0F);
        std::vector<float> update(w.size(), 0.0F);
        const auto own = static_cast<std::size_t>(n - 1 - worker.index().value);
        update[own] = static_cast<float>(worker.workers());
        worker.initialize(w);
        for (int i = 1; i <= 200; ++i) {
          if (i % 2 == 0) {
            worker.push_pull(update, w);
          } else {
            worker.push(update);
            worker.pull(w);
          }
          ASSERT_NEAR(w[own], static_cast<float>(i), 1e-3F) << sync << " n=" << n;
        }
      });
    }
  }
}

TEST_P(SessionTest, SnapshotModelsNeverReturnAMixOfVersions) {
  // Every update adds the same to every element: any two elements that differ are of two versions.
  for (const auto& sync :
       {std::string("bsp"), "drop:n=" + std::to_string(std::max(1, ranks() - static_cast<int>(servers()) - 1))}) {
    if (sync == "drop:n=1" && ranks() == 2) continue;  // n < N needs two workers
    Session session(MPI_COMM_WORLD, options(sync, 40000));
    session.run([&](Worker& worker) {
      std::vector<float> w(40000, 0.0F);
      const std::vector<float> update(w.size(), 1.0F);
      worker.initialize(w);
      for (int i = 0; i < 300; ++i) {
        worker.push_pull(update, w);
        const auto [low, high] = std::minmax_element(w.begin(), w.begin() + 19000);
        ASSERT_EQ(*low, *high) << sync << " iteration " << i;
      }
    });
  }
}

TEST_P(SessionTest, EarlyFinishersLeaveTheOthersRunning) {
  for (const char* sync : {"bsp", "ssp:s=2", "softsync:n=1"}) {
    Session session(MPI_COMM_WORLD, options(sync, 3000));
    session.run([&](Worker& worker) {
      std::vector<float> w(3000, 0.0F);
      const std::vector<float> update(w.size(), 1.0F);
      worker.initialize(w);
      const int iterations = worker.index().value == 0 ? 1 : 50 + static_cast<int>(worker.index().value);
      for (int i = 0; i < iterations; ++i) worker.push_pull(update, w);
    });
    const auto weights = session.gather_weights();
    if (weights.empty() || ranks() == 2) continue;
    // 1 + 51 + 52 pushes of 1/3.
    if (std::string(sync) != "softsync:n=1") {
      EXPECT_NEAR(weights[0], 104.0F / 3, 1e-3F) << sync;
    }
  }
}

TEST_P(SessionTest, HalfWidthWireKeepsWhatFitsAndHalvesTheBytes) {
  // Small integers and their quarters are exact in bf16 and fp16, so the result is that of float32.
  for (const char* wire : {"fp32", "bf16", "fp16"}) {
    for (const char* slicing : {"eps", "tensor"}) {
      auto given = options("bsp", 5001);
      given.wire = wire;
      given.slicing = slicing;
      Session session(MPI_COMM_WORLD, given);
      session.run([&](Worker& worker) {
        std::vector<float> w(5001);
        for (std::size_t j = 0; j < w.size(); ++j) w[j] = static_cast<float>(j % 16);
        const std::vector<float> update(w.size(), static_cast<float>(worker.workers()) / 4);
        worker.initialize(w);
        for (int i = 1; i <= 8; ++i) {
          worker.push_pull(update, w);
          const float pushed = 0.25F * static_cast<float>(i) * static_cast<float>(worker.workers());
          for (std::size_t j = 0; j < w.size(); ++j) ASSERT_EQ(w[j], static_cast<float>(j % 16) + pushed) << wire << j;
        }
        // Each odd shard takes half a place more.
        const std::uint64_t full = 2 * 4 * 5001;
        const auto bytes = worker.last_transfer().bytes;
        if (std::string(wire) == "fp32") {
          EXPECT_EQ(bytes, full);
        } else {
          EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(full) / 2, 16);
        }
      });
    }
  }
}

TEST_P(SessionTest, CentralCoordinationGivesTheSameBspWeights) {
  std::vector<std::vector<float>> results;
  for (const char* coordination : {"per-server", "central"}) {
    auto given = options("bsp", 5000);
    given.coordination = coordination;
    Session session(MPI_COMM_WORLD, given);
    session.run([&](Worker& worker) {
      std::vector<float> w(5000, 0.0F);
      std::vector<float> update(w.size());
      worker.initialize(w);
      for (int i = 0; i < 20; ++i) {
        for (std::size_t j = 0; j < w.size(); ++j)
          update[j] = std::sin(static_cast<float>(j + worker.index().value) + w[j]);
        worker.push_pull(update, w);
      }
    });
    results.push_back(session.gather_weights());
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_P(SessionTest, MisuseIsRefusedByName) {
  Session session(MPI_COMM_WORLD, options("asp", 100));
  session.run([&](Worker& worker) {
    std::vector<float> w(100, 0.0F);
    std::vector<float> short_one(99, 0.0F);
    EXPECT_THROW(worker.push(w), UsageError) << "push before initialize";
    worker.initialize(w);
    EXPECT_THROW(worker.push(short_one), UsageError);
    EXPECT_THROW(worker.pull(short_one), UsageError);
    EXPECT_THROW(worker.initialize(w), UsageError);
    EXPECT_THROW(worker.push_pull(w, w), UsageError) << "overlapping buffers";
    std::vector<float> two(150, 0.0F);
    EXPECT_THROW(worker.push_pull(std::span(two).first(100), std::span(two).last(100)), UsageError);
    std::vector<float> both(200, 0.0F);
    EXPECT_NO_THROW(worker.push_pull(std::span(both).first(100), std::span(both).last(100)));
  });
}

TEST_P(SessionTest, BadOptionsAreRefusedOnAllRanksAlike) {
  const auto refused = [&](SessionOptions bad) {
    try {
      Session session(MPI_COMM_WORLD, bad);
      return std::string();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  auto bad = options("asp", 100);
  bad.servers = static_cast<std::uint32_t>(ranks());
  EXPECT_NE(refused(bad).find("--servers must be 1 to"), std::string::npos);
  EXPECT_NE(refused(options("spp:s=3", 100)).find("ssp"), std::string::npos);
  bad = options("asp", 100);
  bad.stall_s = 0;
  EXPECT_NE(refused(bad).find("--stall-s"), std::string::npos);
  bad = options("asp", 100);
  if (rank() == ranks() - 1) bad.chunk_kib = 8;
  EXPECT_NE(refused(bad).find("differs"), std::string::npos) << "one rank has another configuration";
  bad = options("asp", 100);
  bad.prepare = [](WorkerIndex index, std::uint32_t workers) -> std::vector<TensorSpec> {
    if (index.value + 1 == workers) throw UsageError("cannot read my data");
    return {{"a", {100}}};
  };
  EXPECT_NE(refused(bad).find("cannot read my data"), std::string::npos) << "one rank fails to load";
}

INSTANTIATE_TEST_SUITE_P(Transports, SessionTest, ::testing::Values("rma", "p2p"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fluentps::test
