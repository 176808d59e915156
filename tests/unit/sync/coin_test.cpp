/// The coin: one per seed, worker and iteration, the same on all servers, uniform; and the fraction of pauses it gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "desk.hpp"

namespace fluentps::test {
namespace {

Controller controller_of(std::uint32_t server, std::uint64_t seed, bool per_server) {
  return {{.workers = 4, .release = Release::kSoft, .seed = seed, .coin_per_server = per_server},
          SyncPlan("asp", 4, 8),
          ServerIndex{server}};
}

TEST(Coin, is_the_same_on_all_servers) {
  const auto first = controller_of(0, 7, false);
  for (std::uint32_t server = 1; server < 8; ++server) {
    const auto other = controller_of(server, 7, false);
    for (std::uint32_t w = 0; w < 4; ++w)
      for (Iteration i = 0; i < 100; ++i) EXPECT_EQ(first.state().coin({w}, i), other.state().coin({w}, i));
  }
}

TEST(Coin, may_be_one_per_server) {
  const auto first = controller_of(0, 7, true);
  const auto other = controller_of(1, 7, true);
  int equal = 0;
  for (Iteration i = 0; i < 1000; ++i) equal += first.state().coin({0}, i) == other.state().coin({0}, i) ? 1 : 0;
  EXPECT_EQ(equal, 0);
}

TEST(Coin, differs_between_seeds_workers_and_iterations) {
  std::vector<double> coins;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto each = controller_of(0, seed, false);
    for (std::uint32_t w = 0; w < 4; ++w)
      for (Iteration i = 0; i < 100; ++i) coins.push_back(each.state().coin({w}, i));
  }
  std::sort(coins.begin(), coins.end());
  EXPECT_EQ(std::adjacent_find(coins.begin(), coins.end()), coins.end());
  EXPECT_GE(coins.front(), 0);
  EXPECT_LT(coins.back(), 1);
}

TEST(Coin, is_uniform) {
  const auto controller = controller_of(0, 3, false);
  std::vector<int> bins(20, 0);
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) ++bins[static_cast<std::size_t>(controller.state().coin({1}, i) * 20)];
  double chi_square = 0;
  for (const int count : bins) chi_square += std::pow(count - kDraws / 20.0, 2) / (kDraws / 20.0);
  EXPECT_LT(chi_square, 43.8);  // 19 degrees of freedom, 0.1 %
}

/// Fraction of first pulls beyond the bound that are paused, one per seed, at a gap of `gap`.
double paused_fraction(const std::string& sync, Iteration gap, int draws) {
  int paused = 0;
  int tries = 0;
  for (std::uint64_t seed = 0; tries < draws; ++seed) {
    Desk desk(sync, 2, {.release = Release::kSoft, .seed = seed});
    bool reached = true;
    for (Iteration i = 0; i < gap && reached; ++i) reached = !desk.both(0, i).empty();
    if (!reached) continue;
    ++tries;
    paused += desk.both(0, gap).empty() ? 1 : 0;
  }
  return static_cast<double>(paused) / draws;
}

TEST(Pssp, pauses_with_probability_c) {
  constexpr int kDraws = 20'000;
  for (const double c : {0.5, 0.1, 0.01, 0.8}) {
    const double five_deviations = 5 * std::sqrt(c * (1 - c) / kDraws);
    EXPECT_NEAR(paused_fraction(fmt::format("pssp:s=3,c={}", c), 3, kDraws), c, five_deviations) << c;
  }
}

TEST(Pssp, dynamic_pauses_the_more_the_further_ahead) {
  constexpr int kDraws = 20'000;
  // alpha / (1 + e^(s-k)) for s = 3, alpha = 0.8: k = 3: 0.4; k = 4: 0.8 * 0.731059 = 0.584847; k = 5: 0.8 * 0.880797.
  const std::pair<Iteration, double> cases[] = {{3, 0.4}, {4, 0.584847}, {5, 0.704638}};
  for (const auto& [gap, probability] : cases)
    EXPECT_NEAR(paused_fraction("pssp:s=3,alpha=0.8", gap, kDraws), probability, 5 * 0.5 / std::sqrt(kDraws)) << gap;
}

TEST(Pssp, servers_pause_the_same_workers) {
  const SyncPlan plan("pssp:s=0,c=0.5", 64, 2);
  Controller first({.workers = 64, .release = Release::kLazy, .seed = 5}, plan, ServerIndex{0});
  Controller other({.workers = 64, .release = Release::kLazy, .seed = 5}, plan, ServerIndex{1});
  for (std::uint32_t w = 0; w < 63; ++w) {  // worker 63 keeps V at 0
    first.push({w}, 0, 0);
    other.push({w}, 0, 0);
  }
  for (std::uint32_t w = 0; w < 63; ++w) EXPECT_EQ(first.pull({w}, 0, 0), other.pull({w}, 0, 0)) << w;
}

}  // namespace
}  // namespace fluentps::test
