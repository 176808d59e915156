/// A million random events per model keep every invariant; and each invariant fails on a controller broken on purpose.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fluentps/sync_model.hpp"
#include "heap.hpp"
#include "model_checker.hpp"

namespace fluentps::test {
namespace {

CheckedPlan one(const std::string& sync, Rule rule) { return {.sync = sync, .rules = {rule}}; }

CheckedPlan drop_plan(std::uint32_t workers) {
  const auto n = std::max(1U, workers / 2);
  return one(fmt::format("drop:n={}", n), {.kind = "drop", .n = n});
}
CheckedPlan psp_plan(std::uint32_t workers) {
  const auto beta = std::max(1U, workers / 2);
  return one(fmt::format("psp:beta={},s=2", beta), {.kind = "psp", .s = 2, .n = beta});
}
CheckedPlan switching_plan(std::uint32_t workers) {
  const auto n = workers - 1;
  return {
      .sync = fmt::format("ssp:s=2; @40 bsp; @80 asp; @110 drop:n={}; @150 pssp:s=1,c=0.3; @190 partial:fraction=0.5; "
                          "@230 psp:beta=1,s=1; @270 dssp:low=1,high=4",
                          n),
      .rules = {{.from = 0, .kind = "ssp", .s = 2},
                {.from = 40, .kind = "bsp"},
                {.from = 80, .kind = "asp"},
                {.from = 110, .kind = "drop", .n = n},
                {.from = 150, .kind = "pssp", .s = 1, .c = 0.3},
                {.from = 190, .kind = "partial", .fraction = 0.5},
                {.from = 230, .kind = "psp", .s = 1, .n = 1},
                {.from = 270, .kind = "dssp", .s = 1, .high = 4}}};
}
std::function<CheckedPlan(std::uint32_t)> fixed(const std::string& sync, Rule rule) {
  return [=](std::uint32_t) { return one(sync, rule); };
}
const auto kSsp = fixed("ssp:s=3", {.kind = "ssp", .s = 3});

struct Named {
  const char* name;
  CheckOptions options;
};

class ModelCheck : public testing::TestWithParam<Named> {};

TEST_P(ModelCheck, a_million_events_keep_every_invariant) { EXPECT_EQ(check(GetParam().options), ""); }

INSTANTIATE_TEST_SUITE_P(
    All, ModelCheck,
    testing::Values(
        Named{"bsp", {.plan = fixed("bsp", {.kind = "bsp"})}}, Named{"asp", {.plan = fixed("asp", {.kind = "asp"})}},
        Named{"ssp", {.plan = kSsp}}, Named{"ssp0", {.plan = fixed("ssp:s=0", {.kind = "ssp"})}},
        Named{"dssp", {.plan = fixed("dssp:low=1,high=5", {.kind = "dssp", .s = 1, .high = 5})}},
        Named{"pssp", {.plan = fixed("pssp:s=2,c=0.3", {.kind = "pssp", .s = 2, .c = 0.3})}},
        Named{"pssp_dynamic", {.plan = fixed("pssp:s=2,alpha=0.9", {.kind = "pssp", .s = 2, .alpha = 0.9})}},
        Named{"drop", {.plan = drop_plan}},
        Named{"partial_fraction", {.plan = fixed("partial:fraction=0.6", {.kind = "partial", .fraction = 0.6})}},
        Named{"partial_timeout", {.plan = fixed("partial:timeout_ms=4", {.kind = "partial", .timeout_ns = 4'000'000})}},
        Named{"psp", {.plan = psp_plan}}, Named{"softsync", {.plan = fixed("softsync:n=2", {.kind = "softsync"})}},
        Named{"switches", {.plan = switching_plan, .episodes = 1000, .events_per_episode = 3000}},
        Named{"fastest", {.plan = fixed("pssp:s=2,c=0.3", {.kind = "pssp", .s = 2, .c = 0.3}), .only_fastest = true}},
        Named{"join", {.plan = fixed("pssp:s=2,c=0.3", {.kind = "pssp", .s = 2, .c = 0.3}), .join = true}},
        Named{"join_psp", {.plan = psp_plan, .join = true}}),
    [](const auto& info) { return std::string(info.param.name); });

// --- Broken on purpose
// ------------------------------------------------------------------------------------------------

/// pssp with s=3 (ssp with c=1) whose conditions are off by the given numbers of iterations.
class FaultySsp : public SyncModel {
 public:
  FaultySsp(Iteration answer, Iteration release, double c = 1) : answer_(answer), release_(release), c_(c) {}
  std::string spec() const override { return fmt::format("faulty:answer={},release={},c={}", answer_, release_, c_); }
  bool may_pull(const SyncState& state, WorkerIndex worker, Iteration i) const override {
    return i < state.v() + 3 + answer_ || state.coin(worker, i) > c_;
  }
  std::optional<Iteration> release_at(const SyncState&, WorkerIndex, Iteration i) const override {
    return i - 2 - release_;
  }

 private:
  Iteration answer_;
  Iteration release_;
  double c_;
};

/// Advances one push early, or never beyond iteration 20.
class FaultyClock : public FaultySsp {
 public:
  explicit FaultyClock(bool stops) : FaultySsp(0, 0), stops_(stops) {}
  std::string spec() const override { return fmt::format("faulty-clock:stops={}", stops_ ? 1 : 0); }
  bool may_advance(const SyncState& state) const override {
    if (stops_) return state.v() < 20 && SyncModel::may_advance(state);
    return state.active_count(state.v()) + 1 >= state.active_workers();
  }

 private:
  bool stops_;
};

void register_faulty_models() {
  static const bool once = [] {
    const auto number = [](const SyncArguments& arguments, const char* key) {
      return std::stod(arguments.find(key)->second);
    };
    register_sync_model({.name = "faulty",
                         .signature = "faulty",
                         .answers = {},
                         .advances = {},
                         .source = {},
                         .make = [=](const SyncArguments& arguments, std::uint32_t) -> std::unique_ptr<SyncModel> {
                           return std::make_unique<FaultySsp>(static_cast<Iteration>(number(arguments, "answer")),
                                                              static_cast<Iteration>(number(arguments, "release")),
                                                              number(arguments, "c"));
                         }});
    register_sync_model({.name = "faulty-clock",
                         .signature = "faulty-clock",
                         .answers = {},
                         .advances = {},
                         .source = {},
                         .make = [=](const SyncArguments& arguments, std::uint32_t) -> std::unique_ptr<SyncModel> {
                           return std::make_unique<FaultyClock>(number(arguments, "stops") == 1);
                         }});
    return true;
  }();
  static_cast<void>(once);
}

const Rule kSspRule{.kind = "ssp", .s = 3};
const Rule kPsspRule{.kind = "pssp", .s = 3, .c = 0.3};

/// The invariant that a fault violates, found within 20 episodes.
std::string violation(const std::string& sync, const Rule& rule, const MakeSubject& make_subject = make_controller) {
  register_faulty_models();
  const auto found = check({.plan = fixed(sync, rule), .episodes = 20, .make_subject = make_subject});
  return found.substr(0, found.find(':'));
}

/// Breaks one call in a hundred.
class Flaky : public Subject {
 public:
  using Subject::Subject;

 protected:
  bool now() const { return ++calls_ % 100 == 0; }

 private:
  mutable int calls_ = 0;
};

class DropsGrants : public Flaky {
  using Flaky::Flaky;
  std::vector<Grant> take_grants() override {
    auto grants = Subject::take_grants();
    if (!grants.empty() && now()) grants.pop_back();
    return grants;
  }
};
class DoublesGrants : public Flaky {
  using Flaky::Flaky;
  std::vector<Grant> take_grants() override {
    auto grants = Subject::take_grants();
    if (!grants.empty() && now()) grants.push_back(grants.back());
    return grants;
  }
};
class Miscounts : public Flaky {
  using Flaky::Flaky;
  std::uint32_t count(Iteration i) const override { return Subject::count(i) + (now() ? 1 : 0); }
};
class MiscountsDelays : public Flaky {
  using Flaky::Flaky;
  std::uint64_t delayed_pulls() const override { return Subject::delayed_pulls() + (now() ? 1 : 0); }
};
class MisjudgesLate : public Flaky {
  using Flaky::Flaky;
  bool push(WorkerIndex worker, Iteration i, std::int64_t now_ns) override {
    return Subject::push(worker, i, now_ns) != now();
  }
};
class IgnoresLeaving : public Subject {
  using Subject::Subject;
  void leave(WorkerIndex, std::int64_t) override {}
};
class Hoards : public Subject {
  using Subject::Subject;
  std::vector<Grant> take_grants() override {
    hoard_.push_back(Subject::take_grants());
    return hoard_.back();
  }
  std::vector<std::vector<Grant>> hoard_;
};

template <typename Mutant>
std::unique_ptr<Subject> make(const ControllerOptions& options, const std::string& sync) {
  return std::make_unique<Mutant>(options, sync);
}

TEST(Mutants, the_unbroken_ones_pass) {
  EXPECT_EQ(violation("ssp:s=3", kSspRule), "");
  EXPECT_EQ(violation("faulty:answer=0,release=0,c=1", kSspRule), "");
  EXPECT_EQ(violation("faulty:answer=0,release=0,c=0.3", kPsspRule), "");
}
TEST(Mutants, answering_one_iteration_too_far_breaks_the_staleness_bound) {
  EXPECT_EQ(violation("faulty:answer=1,release=0,c=1", kSspRule), "staleness");
}
TEST(Mutants, releasing_one_iteration_too_early_breaks_the_staleness_bound) {
  EXPECT_EQ(violation("faulty:answer=0,release=1,c=0.3", kPsspRule), "staleness");
}
TEST(Mutants, releasing_at_the_next_advance_whatever_the_gap_breaks_the_staleness_bound) {
  EXPECT_EQ(violation("faulty:answer=0,release=1000,c=0.3", kPsspRule), "staleness");
}
TEST(Mutants, pausing_too_seldom_breaks_the_staleness_bound) {
  EXPECT_EQ(violation("faulty:answer=0,release=0,c=0.25", kPsspRule), "staleness");
}
TEST(Mutants, delaying_one_iteration_too_early_is_needless) {
  EXPECT_EQ(violation("faulty:answer=-1,release=0,c=1", kSspRule), "needless");
}
TEST(Mutants, releasing_one_iteration_too_late_strands) {
  EXPECT_EQ(violation("faulty:answer=0,release=-1,c=1", kSspRule), "stranded");
}
TEST(Mutants, a_lost_grant_strands) { EXPECT_EQ(violation("ssp:s=3", kSspRule, make<DropsGrants>), "stranded"); }
TEST(Mutants, a_grant_given_twice_is_seen) {
  EXPECT_EQ(violation("ssp:s=3", kSspRule, make<DoublesGrants>), "answers");
}
TEST(Mutants, a_miscounted_push_is_seen) { EXPECT_EQ(violation("ssp:s=3", kSspRule, make<Miscounts>), "counts"); }
TEST(Mutants, a_miscounted_delay_is_seen) {
  EXPECT_EQ(violation("ssp:s=3", kSspRule, make<MiscountsDelays>), "counts");
}
TEST(Mutants, a_late_push_taken_for_timely_is_seen) {
  EXPECT_EQ(violation("ssp:s=3", kSspRule, make<MisjudgesLate>), "late");
}
TEST(Mutants, a_clock_that_advances_early_is_seen) { EXPECT_EQ(violation("faulty-clock:stops=0", kSspRule), "clock"); }
TEST(Mutants, a_worker_counted_after_it_left_is_seen) {
  EXPECT_EQ(violation("ssp:s=3", kSspRule, make<IgnoresLeaving>), "clock");
}
TEST(Mutants, memory_that_grows_with_the_iterations_is_seen) {
  if (!heap_is_counted()) GTEST_SKIP() << "this allocator does not count the heap";
  EXPECT_EQ(violation("ssp:s=3", kSspRule, make<Hoards>), "memory");
}

/// The reference stands still there too: nothing but the standstill itself is wrong.
TEST(Mutants, a_standstill_is_seen) {
  register_faulty_models();
  const auto found = check({.plan = fixed("faulty-clock:stops=1", {.kind = "stops", .s = 3}), .episodes = 1});
  EXPECT_EQ(found.substr(0, found.find(':')), "progress");
}

}  // namespace
}  // namespace fluentps::test
