/// Adds up a run.
#include "trace/summary.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trace/attributes.hpp"

namespace fluentps::trace {
namespace {

constexpr double kSecond_ns = 1e9;

std::uint64_t end_ns(const IterationRow& row) {
  return row.begin_ns + row.compute_ns + row.push_ns + row.wait_ns + row.pull_ns;
}

struct Times {
  double compute = 0, push = 0, wait = 0, pull = 0, all = 0;
};

/// Clocks differ by little (clock_offset_ns), which matters not here.
void add_worker(const RankData& worker, Summary& summary, Times& times, std::uint64_t& first_ns,
                std::uint64_t& last_ns) {
  if (worker.iterations.empty()) return;
  std::uint64_t own_last_ns = 0;
  for (const auto& row : worker.iterations) {
    times.compute += static_cast<double>(row.compute_ns);
    times.push += static_cast<double>(row.push_ns);
    times.wait += static_cast<double>(row.wait_ns);
    times.pull += static_cast<double>(row.pull_ns);
    summary.bytes += row.bytes;
    own_last_ns = std::max(own_last_ns, end_ns(row));
  }
  const auto own_first_ns = worker.iterations.front().begin_ns;
  summary.iterations += worker.iterations.size();
  times.all += static_cast<double>(own_last_ns) - static_cast<double>(own_first_ns);
  first_ns = std::min(first_ns, own_first_ns);
  last_ns = std::max(last_ns, own_last_ns);
  if (worker.index == 0) summary.last_loss = worker.iterations.back().loss;
}

void add_evaluations(const RankData& worker, Summary& summary) {
  for (const auto& row : worker.evaluations) {
    if (!summary.last_evaluation || row.iteration >= summary.last_evaluation->iteration) summary.last_evaluation = row;
    if (!summary.best_evaluation || row.test_accuracy > summary.best_evaluation->test_accuracy)
      summary.best_evaluation = row;
  }
}

double add_server(const RankData& server, Summary& summary) {
  double staleness = 0;
  for (const auto& row : server.pushes) {
    staleness += row.staleness;
    summary.staleness_max = std::max(summary.staleness_max, row.staleness);
    summary.late += row.late != 0 ? 1 : 0;
    summary.dropped += row.applied_ns == 0 ? 1 : 0;
  }
  summary.pushes += server.pushes.size();
  summary.pulls += server.server_pulls.size();
  for (const auto& row : server.server_pulls) summary.delayed += row.delayed != 0 ? 1 : 0;
  return staleness;
}

std::string byte_text(std::uint64_t bytes) {
  constexpr double kGiga = 1e9;
  constexpr double kMega = 1e6;
  const auto value = static_cast<double>(bytes);
  return value >= kGiga ? fmt::format("{:.2f} GB", value / kGiga) : fmt::format("{:.2f} MB", value / kMega);
}

std::string role_table(const RunData& run) {
  auto text = fmt::format("{:>5}  {:<10} {:<16} {:>10} {:>8} {:>8} {:>9}  {}\n", "rank", "role", "host", "rows",
                          "pulls", "delayed", "staleness", "trace");
  for (const auto& rank : run.ranks) {
    Summary own;
    const double staleness = add_server(rank, own);
    const auto role = fmt::format("{} {}", rank.server ? "server" : "worker", rank.index);
    text += fmt::format("{:>5}  {:<10} {:<16} {:>10} {:>8} ", rank.rank, role, value_of(rank.attributes, "host", "?"),
                        rank.server ? rank.pushes.size() : rank.iterations.size(),
                        rank.server ? rank.server_pulls.size() : rank.worker_pulls.size());
    if (rank.server)
      text += fmt::format("{:>8} {:>9.3f}", own.delayed,
                          own.pushes > 0 ? staleness / static_cast<double>(own.pushes) : 0.0);
    else
      text += fmt::format("{:>8} {:>9}", "", "");
    text += fmt::format("  {}\n", rank.done ? "closed" : "open");
  }
  return text;
}

std::string evaluation_text(const Summary& summary) {
  if (!summary.last_evaluation) return "";
  const auto& last = *summary.last_evaluation;
  const auto& best = *summary.best_evaluation;
  return fmt::format("accuracy      {:.4f} at iteration {} (best {:.4f} at {}), test loss {:.4f}\n", last.test_accuracy,
                     last.iteration, best.test_accuracy, best.iteration, last.test_loss);
}

}  // namespace

Summary summarize(const RunData& run) {
  Summary summary;
  Times times;
  std::uint64_t first_ns = UINT64_MAX;
  std::uint64_t last_ns = 0;
  double staleness = 0;
  summary.done = std::all_of(run.ranks.begin(), run.ranks.end(), [](const auto& rank) { return rank.done; });
  for (const auto& rank : run.ranks) {
    ++(rank.server ? summary.servers : summary.workers);
    if (rank.server) {
      staleness += add_server(rank, summary);
    } else {
      add_worker(rank, summary, times, first_ns, last_ns);
      add_evaluations(rank, summary);
    }
  }
  if (summary.pushes > 0) summary.staleness_mean = staleness / static_cast<double>(summary.pushes);
  if (last_ns > first_ns) summary.seconds = static_cast<double>(last_ns - first_ns) / kSecond_ns;
  if (summary.seconds > 0)
    summary.iterations_per_s = static_cast<double>(summary.iterations) / summary.workers / summary.seconds;
  if (times.all > 0) {
    summary.compute_share = times.compute / times.all;
    summary.push_share = times.push / times.all;
    summary.wait_share = times.wait / times.all;
    summary.pull_share = times.pull / times.all;
    summary.other_share = 1 - summary.compute_share - summary.push_share - summary.wait_share - summary.pull_share;
  }
  return summary;
}

std::string to_text(const RunData& run, const Summary& s) {
  const auto& a = run.attributes;
  auto text = fmt::format("run           {}{}\n", value_of(a, "run_id", "?"),
                          s.done ? "" : "  (not closed by all ranks: running, or crashed)");
  text += fmt::format("trace         {}\n", run.path);
  text += fmt::format("begun         {}   git {}\n", value_of(a, "origin_utc", "?"), value_of(a, "git", "?"));
  text += fmt::format("sync          {} ({}), {}, transport {}\n", value_of(a, "sync", "?"),
                      value_of(a, "release", "?"), value_of(a, "coordination", "?"), value_of(a, "transport", "?"));
  if (const auto groups = value_of(a, "group_of_worker"); !groups.empty())
    text += fmt::format("local groups  {}, worker by worker: {} (servers count groups)\n", value_of(a, "local_group"),
                        groups);
  text += fmt::format("command       {}\n\n{}\n", value_of(a, "argv", "?"), role_table(run));
  text += fmt::format("iterations/s  {:.3f} per worker ({} iterations of {} workers in {:.3f} s)\n", s.iterations_per_s,
                      s.iterations, s.workers, s.seconds);
  text += fmt::format("time          compute {:.1f} %, push {:.1f} %, wait {:.1f} %, pull {:.1f} %, other {:.1f} %\n",
                      100 * s.compute_share, 100 * s.push_share, 100 * s.wait_share, 100 * s.pull_share,
                      100 * s.other_share);
  text += fmt::format("bytes         {} pushed and pulled\n", byte_text(s.bytes));
  text += fmt::format("pulls         {} answered, {} delayed (DPRs)\n", s.pulls, s.delayed);
  text += fmt::format("pushes        {}, {} late, {} dropped\n", s.pushes, s.late, s.dropped);
  text += fmt::format("staleness     mean {:.3f}, max {}\n", s.staleness_mean, s.staleness_max);
  if (s.last_loss) text += fmt::format("loss          {:.6g} (worker 0, last iteration)\n", *s.last_loss);
  text += evaluation_text(s);
  for (const auto& note : run.notes) text += fmt::format("note          {}\n", note);
  return text;
}

std::string to_line(const Summary& s) {
  auto text = fmt::format("{:.1f} s: {} iterations, {:.2f}/s per worker, {} DPRs, staleness {:.3f} (max {})", s.seconds,
                          s.iterations, s.iterations_per_s, s.delayed, s.staleness_mean, s.staleness_max);
  if (s.last_loss) text += fmt::format(", loss {:.5g}", *s.last_loss);
  if (s.last_evaluation) text += fmt::format(", accuracy {:.4f}", s.last_evaluation->test_accuracy);
  return text;
}

}  // namespace fluentps::trace
