/// Chunks of the weights that are read while later ones are still being pushed: what the server offers, and what the
/// worker makes of it.
#include <gtest/gtest.h>

#include <numeric>

#include "ps/worker_client.hpp"
#include "server_bench.hpp"

namespace fluentps::test {
namespace {

using Offer = FakeServerNetwork::Offer;

/// Messages that tell this worker to read ahead, since the last call.
std::vector<std::uint32_t> offers(Bench& bench, std::uint32_t worker) {
  std::vector<std::uint32_t> chunks;
  for (const auto& each : bench.network.take(worker, MessageKind::kCredit))
    if ((each.header.flags & kReadAhead) != 0) chunks.push_back(each.header.chunk);
  return chunks;
}

void push_chunk(Bench& bench, std::uint32_t worker, Iteration i, std::uint32_t chunk, float value,
                std::uint16_t flags = kReadAhead) {
  const bool last = chunk + 1 == bench.chunks();
  bench.send_chunk(worker, MessageKind::kPush, i, chunk, value,
                   static_cast<std::uint16_t>(last ? flags | kWantPull : 0), last ? 0 : flags);
}

TEST(ReadAhead, AChunkIsOfferedWhenItsSumIsComplete) {
  // 3 chunks of 16, 16 and 8, two workers. Expect: chunk c is offered to both with worker 1's chunk c, when it has its
  // final value, and only the rest is left for the grant.
  Bench bench("bsp", 2, 40);
  bench.initialize(1);
  bench.network.offered.clear();
  for (std::uint32_t c = 0; c < 3; ++c) {
    push_chunk(bench, 0, 0, c, 2);
    EXPECT_TRUE(offers(bench, 0).empty());
    push_chunk(bench, 1, 0, c, 4);
    if (c == 2) break;
    EXPECT_EQ(bench.network.weights()[c * kChunk], 4.0F);
    EXPECT_EQ(bench.network.weights()[c * kChunk + kChunk - 1], 4.0F);
    for (std::uint32_t w : {0U, 1U}) EXPECT_EQ(offers(bench, w), std::vector<std::uint32_t>{c + 1});
    EXPECT_TRUE(bench.grants(0).empty());
  }
  for (std::uint32_t w : {0U, 1U}) {
    EXPECT_EQ(bench.grants(w).size(), 1U);
    std::int64_t next = 0;
    for (const auto& each : bench.network.offered) {
      if (each.worker != w) continue;
      EXPECT_EQ(each.first, next);
      next += each.count;
    }
    EXPECT_EQ(next, 40) << "every element once";
  }
}

TEST(ReadAhead, CreditsTravelWithTheOffers) {
  // 6 chunks in a ring of 2. Expect: no worker runs dry, and all slots are free at the end.
  Bench bench("bsp", 2, 6 * kChunk, 2);
  bench.initialize(1);
  std::vector<std::uint32_t> credits = {2, 2};
  for (std::uint32_t c = 0; c < 6; ++c)
    for (std::uint32_t w : {0U, 1U}) {
      ASSERT_GT(credits[w], 0U) << "worker " << w << " chunk " << c;
      --credits[w];
      push_chunk(bench, w, 0, c, 1);
      bench.collect(credits);
    }
  EXPECT_EQ(credits, (std::vector<std::uint32_t>{2, 2}));
}

TEST(ReadAhead, AWorkerAheadOfTheOthersGetsItsSlotsBack) {
  // 6 chunks in a ring of 2, the other worker has pushed nothing. Expect: its chunks go into the sum, so it can finish.
  Bench bench("bsp", 2, 6 * kChunk, 2);
  bench.initialize(1);
  std::vector<std::uint32_t> credits = {2, 2};
  for (std::uint32_t c = 0; c < 6; ++c) {
    ASSERT_GT(credits[0], 0U) << "chunk " << c;
    --credits[0];
    push_chunk(bench, 0, 0, c, 1);
    bench.collect(credits);
  }
}

TEST(ReadAhead, NothingIsOfferedWhereTheWeightsMayStillChange) {
  // asp overwrites at any time; before a switch to asp a push of the next iteration may; an optimizer waits for all.
  for (const std::string sync : {"asp", "bsp; @1 asp", "drop:n=1", "softsync:n=2", "optimizer"}) {
    Bench bench(sync == "optimizer" ? "bsp" : sync, 2, 40, 4, Release::kLazy, [&](ServerOptions& options) {
      if (sync != "optimizer") return;
      options.optimizer.emplace();
      options.layers = {{0, 40}};
    });
    bench.initialize(1);
    for (std::uint32_t c = 0; c < 3; ++c)
      for (std::uint32_t w : {0U, 1U}) push_chunk(bench, w, 0, c, 1);
    for (std::uint32_t w : {0U, 1U}) EXPECT_TRUE(offers(bench, w).empty()) << sync;
  }
}

TEST(ReadAhead, OnlyWhoAsksForItIsOfferedAnything) {
  Bench bench("bsp", 2, 40);
  bench.initialize(1);
  for (std::uint32_t c = 0; c < 3; ++c)
    for (std::uint32_t w : {0U, 1U}) push_chunk(bench, w, 0, c, 1, w == 0 ? kReadAhead : 0);
  EXPECT_EQ(offers(bench, 0), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_TRUE(offers(bench, 1).empty());
}

/// The network of one worker and one server, whose answers are given beforehand.
struct FakeWorkerNetwork : ControlPort, WorkerData {
  explicit FakeWorkerNetwork(FakeClock& the_clock) : clock(the_clock) {}

  void send(std::uint32_t, const Header& header, std::span<const std::byte>) override { sent.push_back(header); }
  std::optional<Message> receive(std::int64_t deadline_ns) override {
    // What comes during a push comes with the first look; answers come when they are waited for.
    clock.now += 1000;
    if (coming.empty() || (deadline_ns == 0 && coming.front().header.kind == MessageKind::kGrant)) return std::nullopt;
    const auto message = coming.front();
    coming.pop_front();
    return message;
  }
  void put(ServerIndex, std::uint32_t, std::int64_t, std::span<const float>) override {}
  void complete_puts(ServerIndex) override {}
  bool puts_finished() override { return true; }
  void get(ServerIndex, std::int64_t offset, std::span<const std::span<float>> parts) override {
    std::int64_t count = 0;
    for (auto part : parts) {
      std::iota(part.begin(), part.end(), static_cast<float>(offset + count));
      count += static_cast<std::int64_t>(part.size());
    }
    gets.emplace_back(offset, count);
    sent_before_get.push_back(sent.size());
  }
  void complete_gets(ServerIndex) override {}

  void will_offer(std::uint32_t chunk) {
    coming.push_back({.peer = 0,
                      .header = {.kind = MessageKind::kCredit, .flags = kReadAhead, .credits = 1, .chunk = chunk},
                      .payload = {}});
  }
  void will_grant() {
    coming.push_back({.peer = 0, .header = {.kind = MessageKind::kGrant, .credits = 1}, .payload = {}});
  }

  FakeClock& clock;
  std::deque<Message> coming;
  std::vector<Header> sent;
  std::vector<std::pair<std::int64_t, std::int64_t>> gets;
  std::vector<std::size_t> sent_before_get;
};

TEST(ReadAhead, AWorkerReadsEveryOfferByItselfAndTheRestWithTheAnswer) {
  // 60 elements in tensors of 25 and 35 on one server, chunks of 16, a ring of 2. On a two-sided transport a get that
  // joins two offers would receive the first of two messages.
  FakeClock clock;
  FakeWorkerNetwork network(clock);
  const ShardMap map({{"a", {25}}, {"b", {35}}}, 1, Slicing::kEps);
  WorkerOptions options;
  options.index = {1};  // worker 0 would send the initial weights
  options.chunk_elements = 16;
  options.ring = 2;
  options.inline_data = {false};
  WorkerClient client(options, map, network, network, clock, nullptr);
  std::vector<float> weights(60, -1.0F);
  network.will_grant();
  client.initialize(weights);
  const std::vector<float> update(60, 1.0F);
  for (int iteration = 0; iteration < 2; ++iteration) {
    network.sent.clear();
    network.gets.clear();
    network.sent_before_get.clear();
    network.coming.clear();
    network.will_offer(1);
    network.will_offer(2);
    network.will_grant();
    std::fill(weights.begin(), weights.end(), -1.0F);
    client.push_pull(update, weights);
    using Get = std::pair<std::int64_t, std::int64_t>;
    EXPECT_EQ(network.gets, (std::vector<Get>{{0, 16}, {16, 16}, {32, 28}}));
    EXPECT_LT(network.sent_before_get[0], 4U) << "before the last chunk is sent";
    for (std::size_t j = 0; j < weights.size(); ++j) EXPECT_EQ(weights[j], static_cast<float>(j));
    for (const auto& each : network.sent) EXPECT_NE(each.flags & kReadAhead, 0);
  }
}

}  // namespace
}  // namespace fluentps::test
