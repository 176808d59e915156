/// What preflight refuses, with invented nodes.
#include "net/preflight.hpp"

#include <gtest/gtest.h>

#include "fluentps/error.hpp"

namespace fluentps {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

NodeFacts roomy() {
  return {.ranks = 4,
          .servers = 1,
          .cores = 8,
          .window_bytes = 100 * kMiB,
          .memory_bytes = 8000 * kMiB,
          .shared_free_bytes = 4000 * kMiB,
          .memlock_bytes = -1,
          .rdma = false};
}

std::string refusal(const NodeFacts& facts) {
  try {
    require_room(facts, "node7");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Preflight, RoomyNodePasses) { EXPECT_EQ(refusal(roomy()), ""); }

TEST(Preflight, MemorySharedMemoryAndLockedMemoryAreNamedWithNeedAndHave) {
  auto facts = roomy();
  facts.memory_bytes = 64 * kMiB;
  EXPECT_NE(refusal(facts).find("need 100 MiB"), std::string::npos) << refusal(facts);
  EXPECT_NE(refusal(facts).find("has 64 MiB"), std::string::npos);
  facts = roomy();
  facts.shared_free_bytes = 110 * kMiB;  // 100 for the windows and 4 x 4 for Open MPI's queues
  EXPECT_NE(refusal(facts).find("110 MiB free"), std::string::npos) << refusal(facts);
  EXPECT_NE(refusal(facts).find("need 116 MiB"), std::string::npos);
  EXPECT_NE(refusal(facts).find("node7"), std::string::npos);
  facts.shared_free_bytes = 116 * kMiB;
  EXPECT_EQ(refusal(facts), "");
  facts = roomy();
  facts.memlock_bytes = kMiB;
  EXPECT_EQ(refusal(facts), "") << "nothing is locked without RDMA";
  facts.rdma = true;
  EXPECT_NE(refusal(facts).find("ulimit -l"), std::string::npos) << refusal(facts);
}

TEST(Preflight, OneRankNeedsNoSharedMemory) {
  auto facts = roomy();
  facts.ranks = 1;
  facts.shared_free_bytes = kMiB;
  EXPECT_EQ(refusal(facts), "");
}

}  // namespace
}  // namespace fluentps
