/// The server's protocol on a fake network: past, in-order and future arrivals.
#include "ps/server.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "fluentps/error.hpp"
#include "server_bench.hpp"

namespace fluentps::test {
namespace {

TEST(Server, PullBeforeInitialWeightsIsAnsweredWithThem) {
  // Receive: worker 1's pull at -1, then worker 0's initial weights.
  // Expect: no answer before, then the initial values.
  Bench bench("ssp:s=3", 2, 40);
  bench.receive(1, {.kind = MessageKind::kPull, .iteration = -1});
  EXPECT_TRUE(bench.grants(1).empty());
  for (std::uint32_t c = 0; c < 3; ++c) bench.send_chunk(0, MessageKind::kInit, 0, c, 7.0F);
  const auto grants = bench.grants(1);
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].payload, std::vector<float>(40, 7.0F));
}

TEST(Server, BspSumsAndAppliesOnceAllHavePushed) {
  // Receive: pushes of 2 and 4 by two workers onto weights of 1.
  // Expect: the first waits; after the second both read 1 + (2+4)/2 = 4.
  Bench bench("bsp", 2, 40);
  bench.initialize(1);
  bench.push(0, 0, 2);
  EXPECT_TRUE(bench.grants(0).empty());
  EXPECT_EQ(bench.weight(), 1.0F);
  bench.push(1, 0, 4);
  for (std::uint32_t w : {0U, 1U}) {
    const auto grants = bench.grants(w);
    ASSERT_EQ(grants.size(), 1U);
    EXPECT_EQ(grants[0].payload, std::vector<float>(40, 4.0F));
    EXPECT_EQ(grants[0].header.v, 1);
  }
}

TEST(Server, BspGivesTheSameBitsInEveryOrderOfArrival) {
  // 1e8 + 1 - 1e8 in float depends on the order of addition: worker order gives (1e8 + -1e8) + 1 = 1, others 0.
  const std::vector<float> values = {1e8F, -1e8F, 1.0F};
  std::vector<std::uint32_t> order = {0, 1, 2};
  do {
    Bench bench("bsp", 3, 20);
    bench.initialize(0);
    for (const auto w : order) bench.push(w, 0, values[w]);
    EXPECT_EQ(bench.weight(), 1.0F * (1.0F / 3.0F));
    for (std::uint32_t w = 0; w < 3; ++w) EXPECT_EQ(bench.grants(w).size(), 1U);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Server, BspChunksOfALaterWorkerWaitForTheirTurn) {
  // Receive: all chunks of worker 1, then those of worker 0, in a ring of 4 with 3 chunks.
  // Expect: worker 1 gets no credit and no answer before worker 0's last chunk.
  Bench bench("bsp", 2, 48);
  bench.initialize(0);
  bench.push(1, 0, 1);
  EXPECT_TRUE(bench.network.sent.empty());
  bench.push(0, 0, 3);
  EXPECT_EQ(bench.grants(0).size(), 1U);
  EXPECT_EQ(bench.grants(1).size(), 1U);
  EXPECT_EQ(bench.weight(), 2.0F);
}

TEST(Server, AspAppliesOnArrivalAndAnswersAtOnce) {
  Bench bench("asp", 4, 16);
  bench.initialize(0);
  bench.push(2, 0, 4);
  const auto grants = bench.grants(2);
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants[0].payload[0], 1.0F);  // 4 / N
  EXPECT_EQ(grants[0].header.flags & kDelayed, 0);
}

TEST(Server, SspHoldsAWorkerThatIsTooFarAhead) {
  // Receive: worker 0 pushes 0, 1, 2 with s = 2; worker 1 nothing.
  // Expect: pulls at 0 and 1 answered (i < V+2), the one at 2 delayed; soft lets it go when V becomes 1, lazy at 3.
  for (const auto release : {Release::kSoft, Release::kLazy}) {
    Bench bench("ssp:s=2", 2, 16, 4, release);
    bench.initialize(0);
    for (Iteration i = 0; i < 2; ++i) {
      bench.push(0, i, 1);
      EXPECT_EQ(bench.grants(0).size(), 1U);
    }
    bench.push(0, 2, 1);
    EXPECT_TRUE(bench.grants(0).empty());
    bench.push(1, 0, 1);
    EXPECT_EQ(bench.grants(0).size(), release == Release::kSoft ? 1U : 0U);
    bench.push(1, 1, 1);
    EXPECT_TRUE(bench.grants(0).empty());
    bench.push(1, 2, 1);
    const auto late = bench.grants(0);
    EXPECT_EQ(late.size(), release == Release::kLazy ? 1U : 0U);
    // A delayed pull is answered with the weights of its release: all six pushes of 1/2.
    if (!late.empty()) {
      EXPECT_EQ(late[0].payload[0], 3.0F);
    }
    EXPECT_EQ(bench.server->statistics().delayed_pulls, 1U);
  }
}

TEST(Server, DropTakesTheFirstArrivalsOnly) {
  // Receive: pushes 3, 6, 9 by three workers, n = 2.
  // Expect: (3+6)/2 applied and V = 1 after the second; the third is dropped, counted and answered.
  Bench bench("drop:n=2", 3, 16);
  bench.initialize(0);
  bench.push(0, 0, 3);
  EXPECT_TRUE(bench.grants(0).empty());
  bench.push(2, 0, 6);
  EXPECT_EQ(bench.weight(), 4.5F);
  EXPECT_EQ(bench.grants(0).size(), 1U);
  EXPECT_EQ(bench.grants(2).size(), 1U);
  bench.push(1, 0, 9);
  EXPECT_EQ(bench.weight(), 4.5F);
  EXPECT_EQ(bench.grants(1).size(), 1U);
  EXPECT_EQ(bench.server->statistics().dropped_pushes, 1U);
}

TEST(Server, DropDoesNotOverwriteASnapshotThatIsBeingRead) {
  // Receive: iteration 0 completes; worker 0 reads on while 1 and 2 push iteration 1.
  // Expect: the weights change only after worker 0's pull-done.
  Bench bench("drop:n=2", 3, 16);
  bench.initialize(0);
  bench.push(0, 0, 2);
  bench.push(1, 0, 2);
  EXPECT_NE(bench.grants(0)[0].header.flags & kAckWanted, 0);
  bench.grants(1);
  bench.push(2, 0, 2);
  bench.grants(2);
  bench.receive(1, {.kind = MessageKind::kPullDone, .iteration = 0});
  bench.receive(2, {.kind = MessageKind::kPullDone, .iteration = 0});
  bench.push(1, 1, 4);
  bench.push(2, 1, 4);
  EXPECT_EQ(bench.weight(), 2.0F);
  EXPECT_TRUE(bench.grants(1).empty());
  bench.receive(0, {.kind = MessageKind::kPullDone, .iteration = 0});
  EXPECT_EQ(bench.weight(), 6.0F);
  EXPECT_EQ(bench.grants(1).size(), 1U);
  EXPECT_EQ(bench.grants(2).size(), 1U);
}

TEST(Server, SwitchFromBspToAspKeepsTheLastSnapshotWhole) {
  // Receive: bsp iteration 0 completes; worker 0 pushes iteration 1 (asp) while worker 1 still reads.
  // Expect: the push waits for worker 1's pull-done, then it is applied and answered.
  Bench bench("bsp; @1 asp", 2, 16);
  bench.initialize(0);
  bench.push(0, 0, 2);
  bench.push(1, 0, 2);
  bench.grants(0);
  bench.grants(1);
  bench.receive(0, {.kind = MessageKind::kPullDone, .iteration = 0});
  bench.push(0, 1, 8);
  EXPECT_EQ(bench.weight(), 2.0F);
  bench.receive(1, {.kind = MessageKind::kPullDone, .iteration = 0});
  EXPECT_EQ(bench.weight(), 6.0F);
  EXPECT_EQ(bench.grants(0).size(), 1U);
}

TEST(Server, SoftsyncAppliesTheMeanOfEveryGroup) {
  // N = 4, n = 2: groups of floor(4/2) = 2. Receive 2 and 6, expect 4 in one step; pulls are always answered.
  Bench bench("softsync:n=2", 4, 16);
  bench.initialize(0);
  bench.push(3, 0, 2);
  EXPECT_EQ(bench.grants(3).size(), 1U);
  EXPECT_EQ(bench.weight(), 0.0F);
  bench.push(1, 0, 6);
  EXPECT_EQ(bench.weight(), 4.0F);
}

TEST(Server, AWorkerThatLeavesIsNotWaitedFor) {
  // Receive: workers 0 and 2 push iteration 0, worker 1 leaves instead (bsp).
  // Expect: the sum of the two is applied, scaled 1/N with the N of the start.
  Bench bench("bsp", 3, 40);
  bench.initialize(0);
  bench.push(0, 0, 3);
  bench.push(2, 0, 6);
  EXPECT_TRUE(bench.grants(0).empty());
  bench.receive(1, {.kind = MessageKind::kLeave});
  EXPECT_EQ(bench.weight(), 9.0F * (1.0F / 3.0F));
  EXPECT_EQ(bench.grants(0).size(), 1U);
  EXPECT_EQ(bench.grants(2).size(), 1U);
  bench.receive(0, {.kind = MessageKind::kLeave});
  EXPECT_FALSE(bench.server->done());
  bench.receive(2, {.kind = MessageKind::kLeave});
  EXPECT_TRUE(bench.server->done());
}

TEST(Server, TheLastContributorMayLeaveToo) {
  // Receive: 0 and 1 push, 2 leaves: nobody is left to apply the sum while adding.
  Bench bench("bsp", 3, 40);
  bench.initialize(0);
  bench.push(0, 0, 3);
  bench.push(1, 0, 6);
  bench.receive(2, {.kind = MessageKind::kLeave});
  EXPECT_EQ(bench.weight(), 9.0F * (1.0F / 3.0F));
  EXPECT_EQ(bench.grants(1).size(), 1U);
}

TEST(Server, PushesWithoutPullsQueueUpInOrder) {
  // Receive: worker 0 pushes iterations 0 and 1 without pulling (bsp), then worker 1 the same.
  // Expect: both sums applied, one after the other: 1 + 1.
  Bench bench("bsp", 2, 16);
  bench.initialize(0);
  bench.push(0, 0, 1, 0);
  bench.push(0, 1, 1, 0);
  bench.push(1, 0, 1, 0);
  EXPECT_EQ(bench.weight(), 1.0F);
  bench.push(1, 1, 1, 0);
  EXPECT_EQ(bench.weight(), 2.0F);
}

TEST(Server, CreditsComeBackInTheMiddleOfALongPush) {
  // Receive: 8 chunks in a ring of 2. Expect: as many credits as chunks, none missing before the worker runs dry.
  Bench bench("asp", 1, 8 * kChunk, 2);
  bench.initialize(0);
  std::vector<std::uint32_t> credits = {2};
  for (std::uint32_t c = 0; c < 8; ++c) {
    ASSERT_GT(credits[0], 0U) << "chunk " << c;
    --credits[0];
    bench.send_chunk(0, MessageKind::kPush, 0, c, 1, kWantPull);
    bench.collect(credits);
  }
  EXPECT_EQ(credits[0], 2U);
}

TEST(Server, RefusesWhatBreaksTheProtocolAndChangesNothing) {
  Bench bench("asp", 2, 40);
  bench.initialize(5);
  const Header good{.kind = MessageKind::kPush, .slot = 0, .chunk = 0, .iteration = 0};
  auto duplicate = good;
  auto future = good;
  future.iteration = 7;
  auto negative = good;
  negative.iteration = -1;
  auto far_chunk = good;
  far_chunk.chunk = 3;
  auto skipped = good;
  skipped.chunk = 1;
  auto bad_slot = good;
  bad_slot.slot = 4;
  auto early_last = good;
  early_last.flags = kLastChunk;
  for (const auto& bad : {future, negative, far_chunk, skipped, bad_slot, early_last})
    EXPECT_THROW(bench.receive(0, bad), ProtocolError);
  EXPECT_THROW(bench.receive(9, good), ProtocolError);
  EXPECT_THROW(bench.receive(1, {.kind = MessageKind::kInit}), ProtocolError);
  EXPECT_EQ(bench.weight(), 5.0F);
  EXPECT_EQ(bench.server->controller().state().progress(WorkerIndex{0}), 0);
  bench.receive(0, good);
  EXPECT_THROW(bench.receive(0, duplicate), ProtocolError);
}

TEST(Server, StateReportNamesWhoIsWaitedFor) {
  Bench bench("bsp", 3, 16);
  bench.initialize(0);
  bench.push(0, 0, 1);
  bench.push(1, 0, 1);
  const auto text = bench.server->describe_state();
  EXPECT_NE(text.find("V=0 (2 of 3 active workers"), std::string::npos) << text;
  EXPECT_NE(text.find("waited for: worker 2"), std::string::npos) << text;
  EXPECT_NE(text.find("waiting: worker 0 for its pull of iteration 0"), std::string::npos) << text;
}

}  // namespace
}  // namespace fluentps::test
