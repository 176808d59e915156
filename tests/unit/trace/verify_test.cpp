/// A trace made by hand holds; with one fault in it, each time another one, the fault is named by rank, table and row.
#include "trace/verify.hpp"

#include <algorithm>
#include <functional>

#include "fluentps/error.hpp"
#include "temp_dir.hpp"

namespace fluentps::trace {
namespace {

constexpr std::size_t kServer = 0;
constexpr std::size_t kWorker0 = 1;
constexpr std::size_t kWorker1 = 2;

RankData rank(const std::string& name, bool server, int number, std::uint32_t index) {
  RankData data;
  data.name = name;
  data.server = server;
  data.rank = number;
  data.index = index;
  data.done = true;
  return data;
}

PushRow push(std::uint16_t worker, std::uint32_t i, std::uint64_t arrive_ns, std::uint32_t staleness) {
  return {.worker = worker,
          .iteration = i,
          .arrive_ns = arrive_ns,
          .applied_ns = arrive_ns + 1,
          .bytes = 40,
          .staleness = staleness,
          .late = 0};
}
ServerPullRow pull(std::uint16_t worker, std::uint32_t i, std::uint64_t time_ns, std::uint32_t v) {
  return {.worker = worker,
          .iteration = i,
          .request_ns = time_ns,
          .answer_ns = time_ns,
          .v_request = v,
          .v_answer = v,
          .delayed = 0};
}
WorkerPullRow answer(std::uint32_t i, std::uint64_t request_ns, std::uint64_t grant_ns, std::uint32_t v) {
  return {.iteration = i, .server = 0, .request_ns = request_ns, .grant_ns = grant_ns, .done_ns = grant_ns + 1, .v = v};
}
IterationRow iteration(std::uint32_t i, std::uint64_t begin_ns) {
  return {.iteration = i,
          .begin_ns = begin_ns,
          .compute_ns = 1,
          .push_ns = 1,
          .wait_ns = 1,
          .pull_ns = 1,
          .loss = 1,
          .lr = 1,
          .bytes = 80};
}

/// One server, two workers, three iterations, lazy ssp:s=1. Worker 0 is ahead: its pull of iteration 1 is asked at
/// V = 0, where 1 < 0 + 1 fails, and goes when V = 2 > 1.
RunData good_run() {
  RunData run;
  run.attributes = {{"sync", "ssp:s=1"}, {"release", "lazy"}, {"workers", "2"},
                    {"servers", "1"},    {"seed", "1"},       {"parameters", "10"}};
  run.ranks = {rank("rank-0000", true, 0, 0), rank("rank-0001", false, 1, 0), rank("rank-0002", false, 2, 1)};
  auto& server = run.ranks[kServer];
  server.pushes = {push(0, 0, 10, 0), push(0, 1, 20, 1), push(1, 0, 30, 0),
                   push(1, 1, 40, 0), push(0, 2, 50, 0), push(1, 2, 60, 0)};
  server.advances = {{.v = 1, .time_ns = 31}, {.v = 2, .time_ns = 41}, {.v = 3, .time_ns = 61}};
  server.server_pulls = {pull(0, 0, 12, 0), pull(1, 0, 32, 1), pull(0, 1, 41, 2),
                         pull(1, 1, 42, 2), pull(0, 2, 52, 2), pull(1, 2, 62, 3)};
  auto& delayed = server.server_pulls[2];
  delayed.request_ns = 22;
  delayed.v_request = 0;
  delayed.delayed = 1;
  run.ranks[kWorker0].iterations = {iteration(0, 1), iteration(1, 15), iteration(2, 45)};
  run.ranks[kWorker0].worker_pulls = {answer(0, 11, 13, 0), answer(1, 21, 43, 2), answer(2, 51, 53, 2)};
  run.ranks[kWorker1].iterations = {iteration(0, 2), iteration(1, 35), iteration(2, 55)};
  run.ranks[kWorker1].worker_pulls = {answer(0, 31, 33, 1), answer(1, 41, 43, 2), answer(2, 61, 63, 3)};
  return run;
}

void set_attribute(RunData& run, const std::string& name, const std::string& value) {
  run.attributes.emplace_back(name, value);  // the last of equal names counts
}

TEST(Verify, GoodTraceHoldsAndItsFiguresAreRight) {
  const auto verification = verify(good_run());
  EXPECT_TRUE(verification.holds()) << to_text(verification);
  ASSERT_EQ(verification.proved.size(), 1U);
  EXPECT_EQ(verification.proved[0], "server 0, lazy ssp:s=1 from iteration 0");
  EXPECT_TRUE(verification.weak.empty());
  ASSERT_EQ(verification.servers.size(), 1U);
  const auto& server = verification.servers[0];
  EXPECT_EQ(server.pushes, 6U);
  EXPECT_EQ(server.pulls, 6U);
  EXPECT_EQ(server.advances, 3U);
  EXPECT_EQ(server.delayed, 1U);
  EXPECT_DOUBLE_EQ(server.staleness_mean, 1.0 / 6);
  EXPECT_EQ(server.staleness_max, 1U);
  EXPECT_DOUBLE_EQ(server.delay_mean_ns, 41 - 22);
  ASSERT_EQ(verification.workers.size(), 2U);
  EXPECT_DOUBLE_EQ(verification.workers[0].staleness_mean, 1.0 / 3);
  EXPECT_EQ(verification.workers[0].delayed, 1U);
  EXPECT_EQ(verification.workers[1].delayed, 0U);
}

struct Mutant {
  const char* name;
  std::function<void(RunData&)> spoil;
  const char* rank;
  const char* table;
  std::uint64_t row;
  const char* text;
};

std::vector<PushRow>& pushes(RunData& run) { return run.ranks[kServer].pushes; }
std::vector<ServerPullRow>& pulls(RunData& run) { return run.ranks[kServer].server_pulls; }
std::vector<AdvanceRow>& advances(RunData& run) { return run.ranks[kServer].advances; }

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> kMutants = {
      {"push twice",
       [](auto& run) {
         auto row = pushes(run)[1];
         pushes(run).insert(pushes(run).begin() + 2, row);
       },
       "rank-0000", "pushes", 2, "applied before"},
      {"push lost", [](auto& run) { pushes(run).pop_back(); }, "rank-0000", "pushes", 5,
       "2 pushes of worker 1, which has done 3"},
      {"push skipped", [](auto& run) { pushes(run).erase(pushes(run).begin() + 1); }, "rank-0000", "pushes", 3,
       "iteration 2 of worker 0 where 1"},
      {"unknown worker", [](auto& run) { pushes(run)[5].worker = 2; }, "rank-0000", "pushes", 5,
       "worker 2 where there are 2"},
      {"applied before arrival", [](auto& run) { pushes(run)[3].arrive_ns = 42; }, "rank-0000", "pushes", 3,
       "before it arrived"},
      {"applied out of order",
       [](auto& run) {
         pushes(run)[4].applied_ns = 40;
         pushes(run)[4].arrive_ns = 40;
       },
       "rank-0000", "pushes", 4, "before the row above"},
      {"dropped under ssp", [](auto& run) { pushes(run)[5].applied_ns = 0; }, "rank-0000", "pushes", 5,
       "dropped though nothing permits it"},
      {"false late", [](auto& run) { pushes(run)[4].late = 1; }, "rank-0000", "pushes", 4,
       "marked late though V was 2"},
      {"missing late",
       [](auto& run) {
         pushes(run)[5].iteration = 2;
         advances(run)[2].time_ns = 55;
       },
       "rank-0000", "pushes", 5, "not marked late"},
      {"wrong staleness", [](auto& run) { pushes(run)[1].staleness = 0; }, "rank-0000", "pushes", 1,
       "staleness 0 where"},
      {"wrong bytes", [](auto& run) { pushes(run)[2].bytes = 44; }, "rank-0000", "pushes", 2, "44 bytes"},
      {"shards too small",
       [](auto& run) {
         for (auto& each : pushes(run)) each.bytes = 36;
       },
       "rank-0000", "pushes", 0, "10 parameters have 40"},
      {"V jumps", [](auto& run) { advances(run).erase(advances(run).begin() + 1); }, "rank-0000", "advances", 1,
       "V is 3 where 2 was expected"},
      {"V falls", [](auto& run) { advances(run)[2].v = 1; }, "rank-0000", "advances", 2, "V is 1 where 3"},
      {"V too early", [](auto& run) { advances(run)[0].time_ns = 25; }, "rank-0000", "advances", 0,
       "V reached 1 when 1 of 2 workers"},
      {"V too late", [](auto& run) { advances(run)[0].time_ns = advances(run)[1].time_ns = 42; }, "rank-0000",
       "advances", 0, "though its pushes were complete at 31"},
      {"V never",
       [](auto& run) {
         advances(run).pop_back();
         pulls(run)[5].v_request = pulls(run)[5].v_answer = 2;
         run.ranks[kWorker1].worker_pulls[2].v = 2;
       },
       "rank-0000", "advances", 2, "ends with V = 2"},
      {"times of V", [](auto& run) { advances(run)[1].time_ns = 20; }, "rank-0000", "advances", 1,
       "before the row above"},
      {"condition broken",
       [](auto& run) {
         pulls(run)[2] = pull(0, 1, 22, 0);
         std::swap(pulls(run)[1], pulls(run)[2]);
         run.ranks[kWorker0].worker_pulls[1].v = 0;
       },
       "rank-0000", "pulls", 1, "answered at V = 0: ssp:s=1 does not allow it"},
      {"released too early",
       [](auto& run) {
         pulls(run)[2].answer_ns = 32;
         pulls(run)[2].v_answer = 1;
         run.ranks[kWorker0].worker_pulls[1].v = 1;
       },
       "rank-0000", "pulls", 2, "releases lazily at V > i only"},
      {"needless delay",
       [](auto& run) {
         pulls(run)[4].delayed = 1;
         pulls(run)[4].answer_ns = 61;
         pulls(run)[4].v_answer = 3;
         run.ranks[kWorker0].worker_pulls[2].v = 3;
       },
       "rank-0000", "pulls", 4, "was delayed at V = 2"},
      {"delay hidden", [](auto& run) { pulls(run)[2].delayed = 0; }, "rank-0000", "pulls", 2, "not marked delayed"},
      {"wrong V",
       [](auto& run) {
         pulls(run)[4].v_request = pulls(run)[4].v_answer = 3;
         run.ranks[kWorker0].worker_pulls[2].v = 3;
       },
       "rank-0000", "pulls", 4, "answered at V = 3 where the advances give 2"},
      {"V falls while waiting", [](auto& run) { pulls(run)[2].v_request = 3; }, "rank-0000", "pulls", 2,
       "it never falls"},
      {"asked at an older V", [](auto& run) { pulls(run)[2].request_ns = 35; }, "rank-0000", "pulls", 2,
       "asked at V = 0 where the advances give 1"},
      {"answered before its push", [](auto& run) { pulls(run)[4].request_ns = pulls(run)[4].answer_ns = 45; },
       "rank-0000", "pulls", 4, "before its own push"},
      {"answered before asked", [](auto& run) { pulls(run)[5].request_ns = 63; }, "rank-0000", "pulls", 5,
       "before the request"},
      {"answered twice", [](auto& run) { pulls(run).push_back(pulls(run)[5]); }, "rank-0000", "pulls", 6,
       "was answered before"},
      {"answers out of order", [](auto& run) { std::swap(pulls(run)[3], pulls(run)[4]); }, "rank-0000", "pulls", 4,
       "before the row above"},
      {"worker saw another V", [](auto& run) { run.ranks[kWorker0].worker_pulls[1].v = 1; }, "rank-0001", "pulls", 1,
       "V = 1 where rank-0000 answered iteration 1 at V = 2"},
      {"worker lost a pull", [](auto& run) { run.ranks[kWorker0].worker_pulls.pop_back(); }, "rank-0000", "pulls", 4,
       "rank-0001 has no row"},
      {"server lost a pull", [](auto& run) { pulls(run).pop_back(); }, "rank-0002", "pulls", 2,
       "rank-0000 has no answer"},
      {"pulled twice",
       [](auto& run) {
         auto& own = run.ranks[kWorker1].worker_pulls;
         own.push_back(own[2]);
       },
       "rank-0002", "pulls", 3, "was pulled before"},
      {"grant before request", [](auto& run) { run.ranks[kWorker1].worker_pulls[0].grant_ns = 30; }, "rank-0002",
       "pulls", 0, "not in order"},
      {"done before grant", [](auto& run) { run.ranks[kWorker1].worker_pulls[0].done_ns = 32; }, "rank-0002", "pulls",
       0, "not in order"},
      {"asked before it began", [](auto& run) { run.ranks[kWorker1].iterations[1].begin_ns = 42; }, "rank-0002",
       "pulls", 1, "before its iteration began"},
      {"unknown server", [](auto& run) { run.ranks[kWorker1].worker_pulls[0].server = 1; }, "rank-0002", "pulls", 0,
       "server 1 where there are 1"},
      {"iteration missing",
       [](auto& run) {
         auto& own = run.ranks[kWorker0].iterations;
         own.erase(own.begin() + 1);
       },
       "rank-0001", "iterations", 1, "iteration 2 where 1"},
      {"iterations out of order", [](auto& run) { run.ranks[kWorker0].iterations[2].begin_ns = 5; }, "rank-0001",
       "iterations", 2, "begins before"},
      {"a second server 0",
       [](auto& run) {
         run.ranks.push_back(run.ranks[kServer]);
         run.ranks.back().name = "rank-0003";
       },
       "rank-0003", "attributes", 0, "second"},
      {"under bsp", [](auto& run) { set_attribute(run, "sync", "bsp"); }, "rank-0000", "pulls", 0,
       "answered at V = 0: bsp does not allow it"},
      {"never paused under pssp", [](auto& run) { set_attribute(run, "sync", "pssp:s=1,c=0.0001"); }, "rank-0000",
       "pulls", 2, "was delayed at V = 0 though pssp:s=1,c=0.0001 allowed"},
      {"always paused under pssp", [](auto& run) { set_attribute(run, "sync", "pssp:s=0,c=1"); }, "rank-0000", "pulls",
       0, "does not allow it"},
      {"beyond dssp's bound", [](auto& run) { set_attribute(run, "sync", "dssp:low=0,high=0"); }, "rank-0000", "pulls",
       0, "does not allow it"},
      {"another model on this server", [](auto& run) { set_attribute(run, "sync", "ssp:s=1; server0@2=bsp"); },
       "rank-0000", "pulls", 4, "bsp does not allow it"},
      {"asp delays nobody", [](auto& run) { set_attribute(run, "sync", "asp"); }, "rank-0000", "pulls", 2,
       "though asp allowed"},
  };
  return kMutants;
}

TEST(Verify, EveryMutantIsCaught) {
  for (const auto& mutant : mutants()) {
    auto run = good_run();
    mutant.spoil(run);
    const auto verification = verify(run);
    EXPECT_FALSE(verification.holds()) << mutant.name;
    const bool named =
        std::any_of(verification.violations.begin(), verification.violations.end(), [&](const Violation& each) {
          return each.rank == mutant.rank && each.table == mutant.table && each.row == mutant.row &&
                 each.text.find(mutant.text) != std::string::npos;
        });
    EXPECT_TRUE(named) << mutant.name << "\n" << to_text(verification);
  }
}

TEST(Verify, SoftReleaseMayGoAtTheBound) {
  auto run = good_run();
  set_attribute(run, "release", "soft");
  pulls(run)[2].answer_ns = 32;
  pulls(run)[2].v_answer = 1;  // 1 < 1 + 1
  run.ranks[kWorker0].worker_pulls[1].v = 1;
  pushes(run)[4].staleness = 1;
  const auto verification = verify(run);
  EXPECT_TRUE(verification.holds()) << to_text(verification);
}

/// A simulated clock stands still while a server works: order is known from the tables only.
TEST(Verify, EqualTimesRaiseNoFalseAlarm) {
  auto run = good_run();
  for (auto& each : pushes(run)) each.arrive_ns = each.applied_ns = 5;
  for (auto& each : pulls(run)) each.request_ns = each.answer_ns = 5;
  for (auto& each : advances(run)) each.time_ns = 5;
  for (auto& each : run.ranks)
    for (auto& row : each.worker_pulls) row.request_ns = row.grant_ns = row.done_ns = 60;
  const auto verification = verify(run);
  EXPECT_TRUE(verification.holds()) << to_text(verification);
}

TEST(Verify, CrashedTraceMayEndEarlyButNotBeWrong) {
  auto run = good_run();
  for (auto& each : run.ranks) each.done = false;
  advances(run).pop_back();
  pulls(run).erase(pulls(run).begin() + 4);
  run.ranks[kWorker0].iterations.pop_back();
  auto verification = verify(run);
  EXPECT_TRUE(verification.holds()) << to_text(verification);
  ASSERT_EQ(verification.weak.size(), 1U);
  EXPECT_NE(verification.weak[0].find("3 of 3 ranks have not closed"), std::string::npos);
  pulls(run)[2].v_answer = 1;
  EXPECT_FALSE(verify(run).holds());
}

TEST(Verify, EarlyLeaverIsNotWaitedFor) {
  auto run = good_run();  // worker 1 leaves after two iterations: V reaches 3 with worker 0's push, or when it left
  pushes(run).pop_back();
  pulls(run).pop_back();
  advances(run)[2].time_ns = 51;
  pulls(run)[4].v_request = pulls(run)[4].v_answer = 3;
  run.ranks[kWorker0].worker_pulls[2].v = 3;
  run.ranks[kWorker1].iterations.pop_back();
  run.ranks[kWorker1].worker_pulls.pop_back();
  const auto verification = verify(run);
  EXPECT_TRUE(verification.holds()) << to_text(verification);
}

/// Two workers, drop:n=1: the first push of an iteration makes it, the other one is dropped.
RunData drop_run() {
  auto run = good_run();
  set_attribute(run, "sync", "drop:n=1");
  auto& server = run.ranks[kServer];
  server.pushes = {push(0, 0, 10, 0), push(1, 0, 20, 0)};
  server.pushes[1].late = 1;
  server.pushes[1].applied_ns = 0;
  server.advances = {{.v = 1, .time_ns = 11}};
  server.server_pulls = {pull(0, 0, 12, 1), pull(1, 0, 21, 1)};
  run.ranks[kWorker0].iterations.resize(1);
  run.ranks[kWorker0].worker_pulls = {answer(0, 11, 13, 1)};
  run.ranks[kWorker1].iterations.resize(1);
  run.ranks[kWorker1].worker_pulls = {answer(0, 20, 22, 1)};
  return run;
}

TEST(Verify, DropHoldsAndCounts) {
  const auto verification = verify(drop_run());
  EXPECT_TRUE(verification.holds()) << to_text(verification);
  EXPECT_EQ(verification.servers.at(0).dropped, 1U);
  EXPECT_EQ(verification.servers.at(0).late, 1U);
}

TEST(Verify, LatePushAppliedUnderDropIsCaught) {
  auto run = drop_run();
  run.ranks[kServer].pushes[1].applied_ns = 21;
  EXPECT_FALSE(verify(run).holds());
}

/// The good run, whose second pusher is the local group of workers 1 and 2, led by 1.
RunData grouped_run() {
  auto run = good_run();
  run.attributes.emplace_back("workers", "3");
  run.attributes.emplace_back("group_of_worker", "0 1 1");
  run.ranks.push_back(rank("rank-0003", false, 3, 2));
  run.ranks.back().iterations = run.ranks[kWorker1].iterations;
  return run;
}

TEST(Verify, GroupsPushForTheirMembers) {
  const auto verification = verify(grouped_run());
  EXPECT_TRUE(verification.holds()) << to_text(verification);
  EXPECT_TRUE(verification.weak.empty()) << to_text(verification);
  ASSERT_EQ(verification.workers.size(), 3U);
  EXPECT_EQ(verification.workers[1].pulls, 3U);
  EXPECT_EQ(verification.workers[2].iterations, 3U);
  EXPECT_EQ(verification.workers[2].pulls, 0U) << "the leader's";
}

TEST(Verify, AMemberThatDidNotDoWhatItsGroupPushedIsCaught) {
  auto short_one = grouped_run();
  short_one.ranks.back().iterations.pop_back();
  auto verification = verify(short_one);
  ASSERT_EQ(verification.violation_count, 1U) << to_text(verification);
  EXPECT_NE(verification.violations[0].text.find("3 pushes of the local group of worker 2, which has done 2"),
            std::string::npos);
  auto pulling = grouped_run();
  pulling.ranks.back().worker_pulls = pulling.ranks[kWorker1].worker_pulls;
  verification = verify(pulling);
  ASSERT_EQ(verification.violation_count, 1U) << to_text(verification);
  EXPECT_EQ(verification.violations[0].rank, "rank-0003");
}

TEST(Verify, AbsurdGroupsAreUsageErrors) {
  for (const char* bad : {"0 1", "0 1 1 1", "1 0 0", "0 2 1", "0 1 x", "0 -1 1", "x"}) {
    auto run = grouped_run();
    set_attribute(run, "group_of_worker", bad);
    EXPECT_THROW(verify(run), UsageError) << bad;
  }
}

TEST(Verify, WhatIsNotProvedIsSaid) {
  auto run = good_run();
  set_attribute(run, "sync", "dssp:low=1,high=4");
  auto verification = verify(run);
  EXPECT_TRUE(verification.holds()) << to_text(verification);
  EXPECT_TRUE(verification.proved.empty());
  ASSERT_EQ(verification.weak.size(), 1U);
  EXPECT_NE(verification.weak[0].find("i < V+4"), std::string::npos);
  set_attribute(run, "sync", "mine:x=1");
  verification = verify(run);
  EXPECT_TRUE(verification.holds()) << to_text(verification);
  ASSERT_EQ(verification.weak.size(), 1U);
  EXPECT_NE(verification.weak[0].find("not checked"), std::string::npos);
}

TEST(Verify, AbsurdAttributesAreUsageErrors) {
  for (const auto& [name, value] : Attributes{{"workers", "0"}, {"servers", "99999999"}, {"release", "hard"}}) {
    auto run = good_run();
    set_attribute(run, name, value);
    EXPECT_THROW(verify(run), UsageError) << name;
  }
}

}  // namespace
}  // namespace fluentps::trace
