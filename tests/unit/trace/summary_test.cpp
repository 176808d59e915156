/// Numbers of the summary, each worked out by hand; the exported events.
#include "trace/summary.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "temp_dir.hpp"
#include "trace/chrome_export.hpp"

namespace fluentps::trace {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// Two workers. Worker 0: two iterations of 10 ms, begun at 0 and 20 ms: ends at 30 ms. Worker 1: one, 10 to 50 ms.
RunData small_run() {
  RunData run;
  run.path = "results/x";
  run.attributes = {{"run_id", "x"}, {"sync", "asp"}};
  run.ranks.resize(3);
  auto& worker0 = run.ranks[0];
  worker0.name = "rank-0000";
  worker0.done = true;
  worker0.iterations = {{.iteration = 0,
                         .begin_ns = 0,
                         .compute_ns = 5 * kMs,
                         .push_ns = 2 * kMs,
                         .wait_ns = 2 * kMs,
                         .pull_ns = 1 * kMs,
                         .loss = 2,
                         .lr = 1,
                         .bytes = 100},
                        {.iteration = 1,
                         .begin_ns = 20 * kMs,
                         .compute_ns = 5 * kMs,
                         .push_ns = 2 * kMs,
                         .wait_ns = 2 * kMs,
                         .pull_ns = 1 * kMs,
                         .loss = 1.5F,
                         .lr = 1,
                         .bytes = 100}};
  worker0.evaluations = {{.iteration = 1, .time_ns = 1, .test_loss = 3, .test_accuracy = 0.75F},
                         {.iteration = 2, .time_ns = 2, .test_loss = 2, .test_accuracy = 0.5F}};
  auto& worker1 = run.ranks[1];
  worker1.name = "rank-0001";
  worker1.rank = 1;
  worker1.index = 1;
  worker1.done = true;
  worker1.iterations = {{.iteration = 0,
                         .begin_ns = 10 * kMs,
                         .compute_ns = 10 * kMs,
                         .push_ns = 0,
                         .wait_ns = 30 * kMs,
                         .pull_ns = 0,
                         .loss = 9,
                         .lr = 1,
                         .bytes = 50}};
  worker1.worker_pulls = {
      {.iteration = 0, .server = 0, .request_ns = 20 * kMs, .grant_ns = 49 * kMs, .done_ns = 50 * kMs, .v = 0}};
  auto& server = run.ranks[2];
  server.name = "rank-0002";
  server.rank = 2;
  server.server = true;
  server.done = true;
  server.attributes = {{"host", "node\"7\""}, {"clock_offset_ns", "1000"}};
  server.pushes = {
      {.worker = 0, .iteration = 0, .arrive_ns = 6000, .applied_ns = 7000, .bytes = 50, .staleness = 0, .late = 0},
      {.worker = 0, .iteration = 1, .arrive_ns = 8000, .applied_ns = 9000, .bytes = 50, .staleness = 3, .late = 1},
      {.worker = 1, .iteration = 0, .arrive_ns = 9000, .applied_ns = 0, .bytes = 50, .staleness = 0, .late = 1}};
  server.server_pulls = {
      {.worker = 0, .iteration = 0, .request_ns = 7000, .answer_ns = 7000, .v_request = 0, .v_answer = 0, .delayed = 0},
      {.worker = 0,
       .iteration = 1,
       .request_ns = 9000,
       .answer_ns = 11000,
       .v_request = 0,
       .v_answer = 1,
       .delayed = 1}};
  server.advances = {{.v = 1, .time_ns = 11000}};
  return run;
}

TEST(Summary, NumbersByHand) {
  const auto s = summarize(small_run());
  EXPECT_EQ(s.workers, 2U);
  EXPECT_EQ(s.servers, 1U);
  EXPECT_EQ(s.iterations, 3U);
  EXPECT_DOUBLE_EQ(s.seconds, 0.050);
  EXPECT_DOUBLE_EQ(s.iterations_per_s, 3 / 2.0 / 0.050);  // 30
  // Worker 0 spans 30 ms, worker 1 40 ms: 70 ms, of which 20 compute, 4 push, 34 wait, 2 pull, 10 nothing.
  EXPECT_DOUBLE_EQ(s.compute_share, 20.0 / 70);
  EXPECT_DOUBLE_EQ(s.push_share, 4.0 / 70);
  EXPECT_DOUBLE_EQ(s.wait_share, 34.0 / 70);
  EXPECT_DOUBLE_EQ(s.pull_share, 2.0 / 70);
  EXPECT_NEAR(s.other_share, 10.0 / 70, 1e-12);
  EXPECT_EQ(s.bytes, 250U);
  EXPECT_EQ(s.pushes, 3U);
  EXPECT_EQ(s.late, 2U);
  EXPECT_EQ(s.dropped, 1U);
  EXPECT_EQ(s.pulls, 2U);
  EXPECT_EQ(s.delayed, 1U);
  EXPECT_DOUBLE_EQ(s.staleness_mean, 1.0);
  EXPECT_EQ(s.staleness_max, 3U);
  ASSERT_TRUE(s.last_evaluation && s.best_evaluation && s.last_loss);
  EXPECT_EQ(s.last_evaluation->iteration, 2U);
  EXPECT_EQ(s.best_evaluation->iteration, 1U);
  EXPECT_EQ(*s.last_loss, 1.5F);
  EXPECT_TRUE(s.done);
}

TEST(Summary, RunWithoutRowsHasNoNumbers) {
  RunData run;
  run.ranks.resize(1);
  const auto s = summarize(run);
  EXPECT_EQ(s.iterations_per_s, 0);
  EXPECT_EQ(s.compute_share, 0);
  EXPECT_FALSE(s.last_evaluation);
  EXPECT_NE(to_text(run, s).find("0 iterations"), std::string::npos);
}

TEST(Summary, TextHasWhatPeopleAskFor) {
  const auto run = small_run();
  const auto text = to_text(run, summarize(run));
  for (const char* part : {"iterations/s  30.000", "compute 28.6 %", "2 answered, 1 delayed", "mean 1.000, max 3",
                           "accuracy      0.5000", "best 0.7500 at 1", "server 0", "results/x"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(ChromeExport, WritesEventsWithCorrectedTimes) {
  const TempDir dir;
  const auto path = dir.file("trace.json");
  export_chrome(small_run(), path);
  std::ifstream in(path);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(text.front(), '{');
  EXPECT_EQ(std::count(text.begin(), text.end(), '{'), std::count(text.begin(), text.end(), '}'));
  // Worker 0's second wait: begins at 20 + 5 + 2 ms, lasts 2 ms.
  EXPECT_NE(text.find(R"("name":"wait","pid":0,"tid":0,"ts":27000.000,"dur":2000.000)"), std::string::npos);
  // The server's clock is 1 us ahead: 9 to 11 us are 8 to 10.
  EXPECT_NE(text.find(R"("name":"delayed pull","pid":2,"tid":0,"ts":8.000,"dur":2.000)"), std::string::npos);
  EXPECT_NE(text.find(R"(node\"7\")"), std::string::npos);
  EXPECT_NE(text.find(R"("name":"V","pid":2,"ts":10.000,"args":{"V":1})"), std::string::npos);
}

}  // namespace
}  // namespace fluentps::trace
