/// The controller beside its models: switches, leaving workers, options, refusals.
#include <gtest/gtest.h>

#include "desk.hpp"
#include "fluentps/error.hpp"

namespace fluentps::test {
namespace {

TEST(Switch, each_pull_is_ruled_by_the_model_of_its_iteration) {
  Desk desk("ssp:s=2; @2 bsp", 2);
  // Receive: pulls at 0 and 1 with V = 0. Expect: answered by ssp. Then one at 2: delayed by bsp.
  EXPECT_EQ(desk.both(0, 0), "0@0");
  EXPECT_EQ(desk.both(0, 1), "0@1");
  EXPECT_EQ(desk.both(0, 2), "");
  // Receive: worker 1 catches up. Expect: at V = 1 ssp would release 2, bsp does not before V = 3.
  EXPECT_EQ(desk.both(1, 0), "1@0");
  EXPECT_EQ(desk.both(1, 1), "1@1");
  EXPECT_EQ(desk.push(1, 2), "0@2*");
}

TEST(Switch, no_delayed_pull_is_stranded_by_a_looser_model) {
  Desk desk("bsp; @1 asp", 2);
  EXPECT_EQ(desk.both(0, 0), "");
  // Receive: worker 1 pushes 0. Expect: the pull at 0 that bsp delayed is released; from 1 on nobody waits.
  EXPECT_EQ(desk.push(1, 0), "0@0*");
  EXPECT_EQ(desk.both(0, 1), "0@1");
  EXPECT_EQ(desk.both(0, 2), "0@2");
}

TEST(Switch, the_advance_of_v_is_ruled_by_the_model_of_iteration_v) {
  Desk desk("drop:n=1; @1 bsp", 2);
  // Receive: one push of 0. Expect: drop moves V to 1. One push of 1: bsp waits for worker 1.
  EXPECT_EQ(desk.both(0, 0), "0@0");
  EXPECT_EQ(desk.both(0, 1), "");
  EXPECT_EQ(desk.v(), 1);
  // Receive: worker 1's late push of 0, then 1. Expect: no push is lost, V = 2.
  EXPECT_EQ(desk.both(1, 0), "late 1@0");
  EXPECT_EQ(desk.push(1, 1), "0@1*");
  EXPECT_EQ(desk.v(), 2);
}

TEST(Switch, pushes_ahead_of_a_switch_count_after_it) {
  Desk desk("asp; @2 drop:n=2", 3);
  for (const std::uint32_t w : {0U, 1U})
    for (Iteration i = 0; i < 2; ++i) desk.both(w, i);
  EXPECT_EQ(desk.both(0, 2), "");
  EXPECT_EQ(desk.both(1, 2), "");
  EXPECT_EQ(desk.both(2, 0), "2@0");
  // Receive: worker 2 pushes 1. Expect: V = 2 by asp's count, and at once 3 by drop's: both pushes of 2 were there.
  EXPECT_EQ(desk.push(2, 1), "0@2* 1@2*");
  EXPECT_EQ(desk.v(), 3);
}

TEST(Leave, the_clock_goes_on_without_the_worker) {
  Desk desk("ssp:s=1", 3, kLazy);
  EXPECT_EQ(desk.both(0, 0), "0@0");
  EXPECT_EQ(desk.both(0, 1), "");
  EXPECT_EQ(desk.both(1, 0), "1@0");
  EXPECT_EQ(desk.push(1, 1), "");
  // Receive: worker 2, which never pushed, leaves. Expect: V = 2, both pushes of 0 and 1 being in.
  EXPECT_EQ(desk.leave(2), "0@1*");
  EXPECT_EQ(desk.v(), 2);
  EXPECT_EQ(desk.state().active_workers(), 2U);
}

TEST(Leave, pushes_of_those_who_left_do_not_stand_in_for_others) {
  Desk desk("bsp", 3);
  desk.push(2, 0);
  desk.leave(2);
  EXPECT_EQ(desk.state().count(0), 1U);
  EXPECT_EQ(desk.state().active_count(0), 0U);
  // Receive: worker 0 pushes 0: two pushes of two active workers. Expect: V stays 0, worker 1's is missing.
  EXPECT_EQ(desk.both(0, 0), "");
  EXPECT_EQ(desk.v(), 0);
  EXPECT_EQ(desk.push(1, 0), "0@0*");
}

TEST(Leave, drop_asks_for_no_more_than_are_there) {
  Desk desk("drop:n=2", 3);
  desk.leave(1);
  EXPECT_EQ(desk.both(0, 0), "");
  // Receive: worker 2 leaves. Expect: min(2, 1) = 1 push is enough.
  EXPECT_EQ(desk.leave(2), "0@0*");
  EXPECT_EQ(desk.both(0, 1), "0@1");
}

TEST(Leave, a_push_in_the_sum_of_drop_stays_in_it) {
  Desk desk("drop:n=2", 4);
  desk.push(3, 0);
  desk.leave(3);
  // Receive: a second push of 0. Expect: V = 1: the sum holds two.
  desk.push(0, 0);
  EXPECT_EQ(desk.v(), 1);
}

TEST(Leave, the_last_one_out_strands_nobody) {
  Desk desk("bsp", 2);
  EXPECT_EQ(desk.both(0, 0), "");
  // Receive: the waiting worker leaves, then the other. Expect: the pull is still answered, V = 1 and no further.
  EXPECT_EQ(desk.leave(0), "");
  EXPECT_EQ(desk.leave(1), "0@0*");
  EXPECT_EQ(desk.v(), 1);
  EXPECT_EQ(desk.state().active_workers(), 0U);
}

TEST(Leave, the_fastest_is_one_of_those_who_stay) {
  Desk desk("asp", 2);
  for (Iteration i = 0; i < 5; ++i) desk.both(1, i);
  desk.both(0, 0);
  EXPECT_EQ(desk.state().fastest(), 5);
  desk.leave(1);
  EXPECT_EQ(desk.state().fastest(), 1);
}

TEST(Options, only_the_fastest_is_delayed) {
  ControllerOptions options{.release = Release::kSoft, .only_fastest = true};
  Desk desk("pssp:s=1,c=1", 3, options);
  EXPECT_EQ(desk.both(0, 0), "0@0");
  EXPECT_EQ(desk.both(1, 0), "1@0");
  // Receive: pushes of 1 by both, then worker 1's pull. Expect: both are fastest, delayed.
  desk.push(0, 1);
  desk.push(1, 1);
  EXPECT_EQ(desk.pull(1, 1), "");
  // Receive: the same pull of worker 0. Expect: delayed too. Worker 2 is not among the fastest: never delayed.
  EXPECT_EQ(desk.pull(0, 1), "");
  EXPECT_EQ(desk.push(2, 0), "1@1* 0@1*");
}

TEST(Options, a_slower_worker_passes_where_its_coin_would_pause_it) {
  // A seed whose coins pass worker 0 and pause worker 1 at iteration 1.
  std::uint64_t seed = 0;
  for (;; ++seed) {
    Desk desk("pssp:s=1,c=0.5", 3, {.seed = seed});
    if (desk.state().coin({0}, 1) > 0.5 && desk.state().coin({1}, 1) <= 0.5) break;
  }
  for (const bool only_fastest : {false, true}) {
    Desk desk("pssp:s=1,c=0.5", 3, {.release = Release::kSoft, .seed = seed, .only_fastest = only_fastest});
    EXPECT_EQ(desk.both(0, 0), "0@0");
    EXPECT_EQ(desk.both(0, 1), "0@1");
    EXPECT_EQ(desk.push(0, 2), "");
    EXPECT_EQ(desk.both(1, 0), "1@0");
    // Receive: worker 1's pull at 1, one behind worker 0. Expect: answered only where the fastest alone may be delayed.
    EXPECT_EQ(desk.both(1, 1), only_fastest ? "1@1" : "");
  }
}

TEST(Options, a_pull_joins_those_that_wait_at_its_iteration) {
  // Find a seed whose coins pause worker 0 and pass worker 1 at iteration 0.
  std::uint64_t seed = 0;
  for (;; ++seed) {
    Desk desk("pssp:s=0,c=0.5", 3, {.seed = seed});
    if (desk.state().coin({0}, 0) <= 0.5 && desk.state().coin({1}, 0) > 0.5) break;
  }
  for (const bool join : {false, true}) {
    Desk desk("pssp:s=0,c=0.5", 3, {.release = Release::kSoft, .seed = seed, .join = join});
    EXPECT_EQ(desk.both(0, 0), "");
    // Receive: worker 1's pull at 0, which its coin lets pass. Expect: with join it waits as worker 0 does.
    EXPECT_EQ(desk.both(1, 0), join ? "" : "1@0");
    EXPECT_EQ(desk.push(2, 0), join ? "0@0* 1@0*" : "0@0*");
  }
}

TEST(Options, joined_pulls_go_with_the_one_they_joined) {
  // psp is re-checked as workers push; find a seed that makes worker 0 wait for worker 3 and lets worker 1 pass.
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Desk alone("psp:beta=1,s=0", 4, {.release = Release::kSoft, .seed = seed});
    if (!alone.both(0, 0).empty() || alone.both(1, 0).empty() || !alone.push(2, 0).empty()) continue;
    Desk desk("psp:beta=1,s=0", 4, {.release = Release::kSoft, .seed = seed, .join = true});
    EXPECT_EQ(desk.both(0, 0), "");
    // Receive: worker 1's pull, whose own condition holds. Expect: it waits with worker 0, whatever happens meanwhile.
    EXPECT_EQ(desk.both(1, 0), "");
    EXPECT_EQ(desk.push(2, 0), "");
    EXPECT_EQ(desk.push(3, 0), "0@0* 1@0*");
    return;
  }
  FAIL() << "no seed of 1000 gave the situation";
}

/// A message that breaks the protocol is refused by name and changes nothing.
TEST(Refusal, names_the_worker_and_changes_nothing) {
  Desk desk("bsp", 2);
  desk.both(0, 0);
  const auto refuse = [&](auto&& event, const std::string& part) {
    try {
      event();
      ADD_FAILURE() << "not refused: " << part;
    } catch (const ProtocolError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    EXPECT_EQ(desk.v(), 0);
    EXPECT_EQ(desk.waiting(), "0@0*");
    EXPECT_EQ(desk.state().progress({0}), 1);
    EXPECT_EQ(desk.state().progress({1}), 0);
    EXPECT_EQ(desk.controller().take_grants().size(), 0U);
    EXPECT_EQ(desk.controller().delayed_pulls(), 1U);
  };
  refuse([&] { desk.push(7, 0); }, "push of worker 7: there are workers 0 to 1");
  refuse([&] { desk.push(1, 1); }, "push of worker 1: it is of iteration 1, expected was 0");
  refuse([&] { desk.push(1, -1); }, "push of worker 1: it is of iteration -1");
  refuse([&] { desk.push(0, 0); }, "push of worker 0: it is of iteration 0, expected was 1");
  refuse([&] { desk.push(0, 1); }, "push of worker 0 of iteration 1: its pull at 0 has not been answered yet");
  refuse([&] { desk.pull(9, 0); }, "pull of worker 9");
  refuse([&] { desk.pull(1, 0); }, "pull of worker 1: it is at iteration 0, its last push was of -1");
  refuse([&] { desk.pull(1, -2); }, "pull of worker 1: it is at iteration -2");
  refuse([&] { desk.pull(0, 0); }, "pull of worker 0 at iteration 0: its pull before has not been answered yet");
  refuse([&] { desk.leave(2); }, "leave of worker 2");
}

TEST(Refusal, of_one_that_has_left) {
  Desk desk("bsp", 2);
  desk.leave(1);
  EXPECT_THROW(desk.push(1, 0), ProtocolError);
  EXPECT_THROW(desk.leave(1), ProtocolError);
  EXPECT_EQ(desk.both(0, 0), "0@0");
}

TEST(Release, is_parsed_and_printed) {
  EXPECT_EQ(parse_release("soft"), Release::kSoft);
  EXPECT_EQ(parse_release("lazy"), Release::kLazy);
  EXPECT_EQ(to_string(Release::kSoft), "soft");
  EXPECT_EQ(to_string(Release::kLazy), "lazy");
  EXPECT_THROW(parse_release("lasy"), UsageError);
}

}  // namespace
}  // namespace fluentps::test
