/// Sums in worker order, whatever is held and whatever the order of arrival. Expected bits: plain loops in worker
/// order.
#include "ps/ordered_sum.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace fluentps::test {
namespace {

constexpr std::int64_t kChunkElements = 5000;  // more than one block of a pass
constexpr std::uint32_t kChunks = 3;
constexpr std::size_t kShard = 2 * kChunkElements + 777;  // the last chunk is short

/// Workers with rings of slots, which are overwritten with NaN as soon as they are free.
class Pushers {
 public:
  Pushers(std::uint32_t workers, std::uint32_t ring, std::uint32_t hold, Commit commit, unsigned seed)
      : workers_(workers),
        ring_(ring),
        random_(seed),
        weights(memory_.allocate(kShard)),
        sum(memory_, weights, workers, kChunks, kChunkElements, hold, std::move(commit)),
        sent(workers, 0),
        in_use(workers, 0),
        slots_(workers, std::vector<std::vector<float>>(ring, std::vector<float>(kChunkElements))) {
    std::uniform_real_distribution<float> values(-1e4F, 1e4F);
    for (auto& each : weights) each = values(random_);
    for (std::uint32_t w = 0; w < workers; ++w) {
      updates.emplace_back(kShard);
      for (auto& each : updates.back()) each = values(random_);
    }
  }

  /// Offers worker's next chunk; whether it was taken.
  bool offer(std::uint32_t worker) {
    if (sent[worker] == kChunks || in_use[worker] == ring_) return false;
    const auto first = static_cast<std::size_t>(sent[worker]) * kChunkElements;
    const auto count = std::min<std::size_t>(kChunkElements, kShard - first);
    auto& slot = slots_[worker][sent[worker] % ring_];
    std::copy_n(updates[worker].begin() + static_cast<std::ptrdiff_t>(first), count, slot.begin());
    const auto taken = sum.take({.worker = {worker},
                                 .iteration = 0,
                                 .index = sent[worker],
                                 .values = std::span(slot).first(count),
                                 .last = sent[worker] + 1 == kChunks});
    if (taken == Taken::kBlocked) return false;
    ++sent[worker];
    ++in_use[worker];
    clear_used();
    return true;
  }

  void clear_used() {
    while (const auto worker = sum.next_used()) {
      const auto w = worker->value;
      ASSERT_GT(in_use[w], 0U);
      auto& slot = slots_[w][(sent[w] - in_use[w]) % ring_];
      std::fill(slot.begin(), slot.end(), std::numeric_limits<float>::quiet_NaN());
      --in_use[w];
    }
  }

  void run_in_random_order() {
    for (std::size_t blocked = 0; sum.completed() == 0; ++blocked) {
      ASSERT_LT(blocked, 100'000U) << "stuck";
      if (offer(static_cast<std::uint32_t>(random_() % workers_))) blocked = 0;
    }
  }

  /// w + (((u0 + u1) + ...) + uk) / N over these workers, element by element.
  std::vector<float> expected(const std::vector<std::uint32_t>& contributors) const {
    std::vector<float> result(weights_before.begin(), weights_before.end());
    for (std::size_t j = 0; j < kShard; ++j) {
      float total = updates[contributors[0]][j];
      for (std::size_t k = 1; k < contributors.size(); ++k) total += updates[contributors[k]][j];
      const float step = (1.0F / static_cast<float>(workers_)) * total;
      result[j] += step;
    }
    return result;
  }
  void remember() { weights_before.assign(weights.begin(), weights.end()); }

 private:
  std::uint32_t workers_;
  std::uint32_t ring_;
  HostMemory memory_;
  std::mt19937 random_;

 public:
  std::span<float> weights;
  OrderedSum sum;
  std::vector<std::uint32_t> sent;
  std::vector<std::uint32_t> in_use;
  std::vector<std::vector<float>> updates;
  std::vector<float> weights_before;

 private:
  std::vector<std::vector<std::vector<float>>> slots_;
};

std::vector<std::uint32_t> first_workers(std::uint32_t count) {
  std::vector<std::uint32_t> all(count);
  for (std::uint32_t w = 0; w < count; ++w) all[w] = w;
  return all;
}

TEST(OrderedSum, GivesTheBitsOfWorkerOrderWhateverIsHeld) {
  for (const std::uint32_t workers : {1U, 2U, 3U, 4U, 5U, 9U})
    for (const std::uint32_t hold : {0U, 1U, 2U, 3U})
      for (unsigned seed = 0; seed < 4; ++seed) {
        Pushers pushers(workers, hold + 1, hold, {}, seed);
        pushers.remember();
        pushers.run_in_random_order();
        const auto wanted = pushers.expected(first_workers(workers));
        ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), pushers.weights.begin()))
            << workers << " workers, hold " << hold << ", seed " << seed;
        for (const auto each : pushers.in_use) EXPECT_EQ(each, 0U) << "every slot is free after the sum";
      }
}

TEST(OrderedSum, HoldsNoMoreOfAWorkerThanAllowed) {
  Pushers pushers(3, 4, 2, {}, 1);
  ASSERT_TRUE(pushers.offer(0));
  ASSERT_TRUE(pushers.offer(0));
  EXPECT_EQ(pushers.in_use[0], 2U);
  ASSERT_TRUE(pushers.offer(0));
  EXPECT_EQ(pushers.in_use[0], 2U) << "the oldest was added to make room";
}

TEST(OrderedSum, AddsABatchWithoutWaitingForTheLastWorker) {
  // The pass after the last contribution must not have to read what all others sent.
  Pushers pushers(9, 3, 3, {}, 1);
  for (std::uint32_t w = 0; w < OrderedSum::kBatch; ++w) {
    for (std::uint32_t before = 0; before < w; ++before) EXPECT_EQ(pushers.in_use[before], 1U);
    ASSERT_TRUE(pushers.offer(w));
  }
  for (std::uint32_t w = 0; w < OrderedSum::kBatch; ++w) EXPECT_EQ(pushers.in_use[w], 0U) << w;
}

TEST(OrderedSum, LettingGoInTheMiddleChangesNoBits) {
  Pushers pushers(4, 3, 3, {}, 7);
  pushers.remember();
  for (const std::uint32_t w : {0U, 0U, 1U, 0U, 1U, 2U}) {
    ASSERT_TRUE(pushers.offer(w));
    pushers.sum.let_go({w});
    pushers.clear_used();
    EXPECT_EQ(pushers.in_use[w], 0U);
  }
  pushers.run_in_random_order();
  const auto wanted = pushers.expected({0, 1, 2, 3});
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), pushers.weights.begin()));
}

TEST(OrderedSum, AWorkerThatLeavesIsLeftOut) {
  // Any worker may leave before its first chunk, when the others have pushed any part.
  for (std::uint32_t gone = 0; gone < 4; ++gone)
    for (unsigned seed = 0; seed < 60; ++seed) {
      Pushers pushers(4, 3, seed % 4, {}, seed);
      pushers.remember();
      std::mt19937 random(seed);
      for (unsigned n = 0; n < 6 + seed % 20; ++n)
        if (const auto w = static_cast<std::uint32_t>(random() % 4); w != gone) pushers.offer(w);
      pushers.sum.leave({gone}, 0);
      pushers.clear_used();
      pushers.sent[gone] = kChunks;
      if (pushers.sum.completed() == 0) pushers.run_in_random_order();
      std::vector<std::uint32_t> contributors;
      for (std::uint32_t w = 0; w < 4; ++w)
        if (w != gone) contributors.push_back(w);
      const auto wanted = pushers.expected(contributors);
      ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), pushers.weights.begin()))
          << "worker " << gone << ", seed " << seed;
      for (std::uint32_t w = 0; w < 4; ++w) EXPECT_EQ(pushers.in_use[w], 0U) << w;
    }
}

TEST(OrderedSum, GivesAnOptimizerTheWholeSumOnce) {
  for (const std::uint32_t hold : {0U, 3U}) {
    std::vector<float> total;
    int steps = 0;
    Pushers pushers(
        3, hold + 1, hold,
        [&](std::span<float> sum, float scale, double) {
          EXPECT_EQ(scale, 1.0F / 3.0F);
          total.assign(sum.begin(), sum.end());
          ++steps;
        },
        5);
    pushers.run_in_random_order();
    EXPECT_EQ(steps, 1);
    ASSERT_EQ(total.size(), kShard);
    for (std::size_t j = 0; j < kShard; ++j) {
      const float first = pushers.updates[0][j] + pushers.updates[1][j];
      ASSERT_EQ(total[j], first + pushers.updates[2][j]) << j;
    }
  }
}

TEST(OrderedSum, TellsHowFarTheWeightsAre) {
  Pushers pushers(2, 3, 3, {}, 3);
  EXPECT_EQ(pushers.sum.applied(), 0U);
  for (std::uint32_t c = 0; c < kChunks; ++c) ASSERT_TRUE(pushers.offer(0));
  EXPECT_EQ(pushers.sum.applied(), 0U);
  ASSERT_TRUE(pushers.offer(1));
  EXPECT_EQ(pushers.sum.applied(), 1U);
  ASSERT_TRUE(pushers.offer(1));
  EXPECT_EQ(pushers.sum.applied(), 2U);
  ASSERT_TRUE(pushers.offer(1));
  EXPECT_EQ(pushers.sum.applied(), 0U) << "none is under way";
  EXPECT_EQ(pushers.sum.completed(), 1U);
}

}  // namespace
}  // namespace fluentps::test
