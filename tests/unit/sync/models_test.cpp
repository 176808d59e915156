/// Hand-computed event sequences of every model, with both releases.
#include <gtest/gtest.h>

#include "desk.hpp"

namespace fluentps::test {
namespace {

TEST(Bsp, everyone_waits_for_everyone) {
  for (const auto& release : {kSoft, kLazy}) {
    Desk desk("bsp", 2, release);
    // Receive: pulls before anything was pushed. Expect: answered with the initial weights.
    EXPECT_EQ(desk.pull(0, -1), "0@-1");
    EXPECT_EQ(desk.pull(1, -1), "1@-1");
    // Receive: worker 0 pushes and pulls 0. Expect: its pull waits, worker 1 has not pushed 0.
    EXPECT_EQ(desk.both(0, 0), "");
    EXPECT_EQ(desk.waiting(), "0@0*");
    // Receive: worker 1 pushes 0. Expect: V = 1 and worker 0 goes; worker 1's own pull is answered at once.
    EXPECT_EQ(desk.push(1, 0), "0@0*");
    EXPECT_EQ(desk.v(), 1);
    EXPECT_EQ(desk.pull(1, 0), "1@0");
    EXPECT_EQ(desk.controller().delayed_pulls(), 1U);
  }
}

TEST(Asp, nobody_waits_and_v_is_kept) {
  Desk desk("asp", 2);
  // Receive: worker 0 runs three iterations alone. Expect: every pull is answered, V stays 0.
  for (Iteration i = 0; i < 3; ++i) EXPECT_EQ(desk.both(0, i), fmt::format("0@{}", i));
  EXPECT_EQ(desk.v(), 0);
  // Receive: worker 1 pushes 0 and 1. Expect: V = 2.
  desk.both(1, 0);
  desk.both(1, 1);
  EXPECT_EQ(desk.v(), 2);
  EXPECT_EQ(desk.controller().delayed_pulls(), 0U);
}

/// Worker 0 of two runs ahead under ssp:s=2 until its pull at 2 waits.
void run_into_the_bound(Desk& desk) {
  // Receive: pulls at 0 and 1 with V = 0. Expect: answered, 0 < 0+2 and 1 < 0+2.
  EXPECT_EQ(desk.both(0, 0), "0@0");
  EXPECT_EQ(desk.both(0, 1), "0@1");
  // Receive: a pull at 2 with V = 0. Expect: delayed, 2 < 0+2 is false.
  EXPECT_EQ(desk.both(0, 2), "");
}

TEST(Ssp, soft_release_goes_as_soon_as_the_condition_holds) {
  Desk desk("ssp:s=2", 2, kSoft);
  run_into_the_bound(desk);
  // Receive: worker 1 pushes 0. Expect: V = 1, 2 < 1+2, released.
  EXPECT_EQ(desk.push(1, 0), "0@2*");
}

TEST(Ssp, lazy_release_waits_until_all_have_pushed_the_iteration) {
  Desk desk("ssp:s=2", 2, kLazy);
  run_into_the_bound(desk);
  // Receive: worker 1 pushes 0 and 1. Expect: V = 2, not yet beyond 2; worker 0 waits on.
  EXPECT_EQ(desk.both(1, 0), "1@0");
  EXPECT_EQ(desk.both(1, 1), "1@1");
  // Receive: worker 1 pushes 2. Expect: V = 3 > 2, released.
  EXPECT_EQ(desk.push(1, 2), "0@2*");
}

TEST(Ssp, a_bound_reached_again_is_checked_again) {
  Desk desk("ssp:s=2", 2, kSoft);
  run_into_the_bound(desk);
  EXPECT_EQ(desk.both(1, 0), "0@2* 1@0");
  // Receive: a pull at 3 with V = 1. Expect: delayed, although the last one has just been released.
  EXPECT_EQ(desk.both(0, 3), "");
  // Receive: worker 1 pushes 1. Expect: V = 2, 3 < 2+2, released.
  EXPECT_EQ(desk.push(1, 1), "0@3*");
}

TEST(Ssp, without_staleness_sums_in_order_like_bsp) {
  using Kind = Aggregation::Kind;
  const auto kind = [](const char* spec) { return make_sync_model(spec, 4)->aggregation().kind; };
  EXPECT_EQ(kind("bsp"), Kind::kOrderedSum);
  EXPECT_EQ(kind("ssp:s=0"), Kind::kOrderedSum);
  EXPECT_EQ(kind("pssp:s=0,c=1"), Kind::kOrderedSum);
  EXPECT_EQ(kind("ssp:s=1"), Kind::kImmediate);
  EXPECT_EQ(kind("pssp:s=0,c=0.9"), Kind::kImmediate);
  EXPECT_EQ(kind("pssp:s=1,c=1"), Kind::kImmediate);
  EXPECT_EQ(kind("pssp:s=0,alpha=1"), Kind::kImmediate);
  for (const auto* spec : {"asp", "dssp:low=0,high=2", "partial:fraction=1", "partial:timeout_ms=5", "psp:beta=4,s=0"})
    EXPECT_EQ(kind(spec), Kind::kImmediate) << spec;
}

TEST(Pssp, with_certain_pause_is_ssp) {
  Desk desk("pssp:s=2,c=1", 2, kSoft);
  run_into_the_bound(desk);
  EXPECT_EQ(desk.push(1, 0), "0@2*");
}

TEST(Pssp, with_hardly_any_pause_runs_through_the_bound) {
  Desk desk("pssp:s=2,c=1e-12", 2, kSoft);
  // Receive: pulls at 0..9 with V = 0. Expect: all answered, also at and beyond the bound.
  for (Iteration i = 0; i < 10; ++i) EXPECT_EQ(desk.both(0, i), fmt::format("0@{}", i));
}

/// The coin is drawn at the pull: a paused pull goes when the bound holds, a lucky later coin is of no use.
TEST(Pssp, soft_release_follows_the_bound_not_the_coin) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Desk desk("pssp:s=1,c=0.5", 2, {.release = Release::kSoft, .seed = seed});
    Iteration i = 0;
    while (!desk.both(0, i).empty()) ++i;
    // Receive: worker 1 pushes 0, 1, ... Expect: released with V = i, the first for which i < V+1.
    for (Iteration slow = 0; slow < i; ++slow) {
      const auto expected = slow + 1 < i ? "" : fmt::format("0@{}*", i);
      EXPECT_EQ(desk.push(1, slow), expected) << "seed " << seed;
      desk.pull(1, slow);
    }
  }
}

TEST(Pssp, lazy_release_waits_for_the_iteration_itself) {
  Desk desk("pssp:s=1,c=0.5", 2, kLazy);
  Iteration i = 0;
  while (!desk.both(0, i).empty()) ++i;
  for (Iteration slow = 0; slow < i; ++slow) EXPECT_EQ(desk.both(1, slow), fmt::format("1@{}", slow));
  // Receive: worker 1 pushes i. Expect: V = i+1 > i, released.
  EXPECT_EQ(desk.push(1, i), fmt::format("0@{}*", i));
}

TEST(Dssp, runs_ahead_as_far_as_waiting_gets_shorter) {
  constexpr std::int64_t kMs = 1'000'000;
  Desk desk("dssp:low=1,high=4", 2);
  EXPECT_EQ(desk.pull(0, -1), "0@-1");
  EXPECT_EQ(desk.pull(1, -1), "1@-1");
  EXPECT_EQ(desk.both(0, 0, 2 * kMs), "0@0");
  // Receive: a pull at 1 with V = 0, the other worker's speed unknown. Expect: the lower bound, 1 < 0+1 is false.
  EXPECT_EQ(desk.both(0, 1, 4 * kMs), "");
  // Receive: worker 1 pushes 0 after 10 ms. Expect: V = 1, 1 < 1+1, released.
  EXPECT_EQ(desk.both(1, 0, 10 * kMs), "0@1* 1@0");
  // Receive: pulls at 2, 3, 4, every 2 ms, worker 1 being expected at 20 ms. Expect: answered; after 0, 1, 2, 3 more
  // iterations the wait would be 8, 6, 4, 2 ms, so 3 are allowed: bound 4 = high.
  EXPECT_EQ(desk.both(0, 2, 12 * kMs), "0@2");
  EXPECT_EQ(desk.both(0, 3, 14 * kMs), "0@3");
  EXPECT_EQ(desk.both(0, 4, 16 * kMs), "0@4");
  // Receive: a pull at 5 with V = 1. Expect: delayed, 5 < 1+4 is false, until the lower bound holds, 5 < V+1.
  EXPECT_EQ(desk.both(0, 5, 18 * kMs), "");
  EXPECT_EQ(desk.both(1, 1, 20 * kMs), "1@1");
  EXPECT_EQ(desk.both(1, 2, 30 * kMs), "1@2");
  EXPECT_EQ(desk.both(1, 3, 40 * kMs), "1@3");
  EXPECT_EQ(desk.push(1, 4, 50 * kMs), "0@5*");
}

TEST(Dssp, does_not_run_ahead_where_waiting_is_shortest_now) {
  constexpr std::int64_t kMs = 1'000'000;
  Desk desk("dssp:low=1,high=4", 2);
  desk.pull(0, -1);
  desk.pull(1, -1);
  desk.both(0, 0, 9 * kMs);
  desk.both(1, 0, 10 * kMs);
  desk.both(0, 1, 18 * kMs);
  // Receive: a pull at 2 at 27 ms, worker 1 being expected at 30. Expect: V = 1; waits would be 3 ms now, then 4, 5, 6
  // (36 -> 40, 45 -> 50, 54 -> 60): no more iterations, delayed.
  EXPECT_EQ(desk.v(), 1);
  EXPECT_EQ(desk.both(0, 2, 27 * kMs), "");
}

TEST(Dssp, runs_ahead_no_further_than_it_must) {
  constexpr std::int64_t kMs = 1'000'000;
  Desk desk("dssp:low=1,high=9", 2);
  desk.pull(0, -1);
  desk.pull(1, -1);
  desk.both(0, 0, 5 * kMs);
  desk.both(1, 0, 10 * kMs);
  EXPECT_EQ(desk.both(0, 1, 10 * kMs), "0@1");
  // Receive: a pull at 2 at 15 ms, worker 1 being expected at 20, 30, ... Expect: answered; after 0, 1, 2, 3 more
  // iterations the wait is 5, 0, 5, 0 ms: 1 more, not 3.
  EXPECT_EQ(desk.both(0, 2, 15 * kMs), "0@2");
  EXPECT_EQ(desk.both(0, 3, 20 * kMs), "");
}

TEST(Drop, the_first_arrivals_move_the_clock) {
  for (const auto& release : {kSoft, kLazy}) {
    Desk desk("drop:n=2", 3, release);
    EXPECT_EQ(desk.both(0, 0), "");
    EXPECT_EQ(desk.state().count(0), 1U);
    // Receive: the second push of 0. Expect: V = 1, worker 0 goes.
    EXPECT_EQ(desk.both(1, 0), "0@0* 1@0");
    EXPECT_EQ(desk.v(), 1);
    // Receive: the third push of 0. Expect: late, counted nowhere; the worker goes on with the newest weights.
    EXPECT_EQ(desk.both(2, 0), "late 2@0");
    EXPECT_EQ(desk.state().count(0), 0U);
    EXPECT_EQ(desk.state().count(1), 0U);
    EXPECT_EQ(desk.v(), 1);
  }
}

TEST(Drop, a_worker_may_be_many_iterations_behind) {
  Desk desk("drop:n=2", 3);
  for (Iteration i = 0; i < 5; ++i) {
    EXPECT_EQ(desk.both(0, i), "");
    EXPECT_EQ(desk.both(1, i), fmt::format("0@{0}* 1@{0}", i));
  }
  // Receive: worker 2 pushes 0 with V = 5. Expect: late; progress 1, V and the fastest stay 5.
  EXPECT_EQ(desk.both(2, 0), "late 2@0");
  EXPECT_EQ(desk.state().progress({2}), 1);
  EXPECT_EQ(desk.v(), 5);
  EXPECT_EQ(desk.state().fastest(), 5);
  const auto sum = make_sync_model("drop:n=2", 3)->aggregation();
  EXPECT_EQ(sum, (Aggregation{.kind = Aggregation::Kind::kFirstArrivals, .count = 2}));
}

TEST(Partial, a_fraction_opens_the_barrier) {
  Desk desk("partial:fraction=0.5", 4);
  EXPECT_EQ(desk.both(0, 0), "");
  // Receive: the second of 4 pushes. Expect: 2 >= 0.5 * 4, V = 1.
  EXPECT_EQ(desk.both(1, 0), "0@0* 1@0");
  // Receive: the third. Expect: late (it is applied all the same: see Aggregation), its pull is answered.
  EXPECT_EQ(desk.both(2, 0), "late 2@0");
}

TEST(Partial, the_fraction_is_rounded_up_but_not_by_rounding_errors) {
  // 0.3 * 4 = 1.2: two workers. 0.07 * 100 = 7.000000000000001 in binary: seven.
  Desk four("partial:fraction=0.3", 4);
  four.push(0, 0);
  EXPECT_EQ(four.v(), 0);
  four.push(1, 0);
  EXPECT_EQ(four.v(), 1);
  Desk hundred("partial:fraction=0.07", 100);
  for (std::uint32_t w = 0; w < 7; ++w) hundred.push(w, 0);
  EXPECT_EQ(hundred.v(), 1);
}

TEST(Partial, a_timeout_opens_the_barrier) {
  constexpr std::int64_t kMs = 1'000'000;
  Desk desk("partial:timeout_ms=10", 3);
  EXPECT_EQ(desk.controller().deadline_ns(), std::nullopt);
  // Receive: the first push at 5 ms. Expect: the barrier opens at 15 ms, not before.
  EXPECT_EQ(desk.both(0, 0, 5 * kMs), "");
  EXPECT_EQ(desk.both(1, 0, 9 * kMs), "");
  EXPECT_EQ(desk.controller().deadline_ns(), 15 * kMs);
  EXPECT_EQ(desk.tick(15 * kMs - 1), "");
  EXPECT_EQ(desk.tick(15 * kMs), "0@0* 1@0*");
  EXPECT_EQ(desk.controller().deadline_ns(), std::nullopt);
  EXPECT_EQ(desk.push(2, 0, 16 * kMs), "late");
}

TEST(Partial, without_delay_the_timeout_does_not_matter) {
  Desk desk("partial:timeout_ms=10", 2);
  EXPECT_EQ(desk.both(0, 0, 0), "");
  // Receive: the last push before the deadline. Expect: V = 1 at once.
  EXPECT_EQ(desk.both(1, 0, 1), "0@0* 1@0");
}

TEST(Psp, with_all_workers_sampled_is_ssp) {
  Desk desk("psp:beta=2,s=2", 2, kSoft);
  run_into_the_bound(desk);
  EXPECT_EQ(desk.push(1, 0), "0@2*");
}

TEST(Psp, lazy_release_waits_for_everyone) {
  Desk desk("psp:beta=2,s=2", 2, kLazy);
  run_into_the_bound(desk);
  EXPECT_EQ(desk.both(1, 0), "1@0");
  EXPECT_EQ(desk.both(1, 1), "1@1");
  EXPECT_EQ(desk.push(1, 2), "0@2*");
}

TEST(Psp, asks_about_a_uniform_sample) {
  // Workers 0 and 1 of 4 have pushed 0. The pull of worker 0 goes iff both sampled workers are among the two: 1 of 6.
  int answered = 0;
  constexpr int kSeeds = 6000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Desk desk("psp:beta=2,s=0", 4, {.release = Release::kSoft, .seed = seed});
    desk.push(1, 0);
    if (!desk.both(0, 0).empty()) ++answered;
  }
  // Binomial(6000, 1/6): mean 1000, deviation 28.9; five of them.
  EXPECT_NEAR(answered, 1000, 145);
}

TEST(Psp, the_soft_release_asks_the_same_sample_again) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    // Receive: worker 0 waits for one of workers 1 and 2, which both push 0 in turn, or for itself.
    Desk desk("psp:beta=1,s=0", 3, {.release = Release::kSoft, .seed = seed});
    if (!desk.both(0, 0).empty()) continue;
    // Expect: exactly one of the two pushes releases it.
    const auto first = desk.push(1, 0);
    const auto second = desk.push(2, 0);
    EXPECT_EQ(first + second, "0@0*") << "seed " << seed;
  }
}

TEST(Softsync, nobody_waits_and_updates_are_averaged_in_groups) {
  Desk desk("softsync:n=2", 5);
  for (Iteration i = 0; i < 3; ++i) EXPECT_EQ(desk.both(0, i), fmt::format("0@{}", i));
  EXPECT_EQ(desk.v(), 0);
  // floor(5/2) = 2 pushes per update.
  EXPECT_EQ(make_sync_model("softsync:n=2", 5)->aggregation(),
            (Aggregation{.kind = Aggregation::Kind::kGroups, .count = 2}));
  EXPECT_EQ(make_sync_model("softsync:n=5", 5)->aggregation().count, 1U);
}

}  // namespace
}  // namespace fluentps::test
