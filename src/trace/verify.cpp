/// Runs the checks and prints what came of them.
#include "trace/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "trace/contract.hpp"
#include "trace/server_check.hpp"
#include "trace/worker_check.hpp"

namespace fluentps::trace {
namespace {

/// Workers that keep no /iterations: their servers must at least agree.
void compare_servers(const RankData& worker, std::uint32_t pusher, const std::vector<const ServerCheck*>& servers,
                     Verification& verification) {
  if (!worker.done || !worker.iterations.empty()) return;
  std::size_t most = 0;
  for (const auto* each : servers)
    if (each != nullptr && each->rank().done) most = std::max(most, each->history(pusher).pushed_ns.size());
  for (const auto* each : servers) {
    if (each == nullptr || !each->rank().done) continue;
    const auto here = each->history(pusher).pushed_ns.size();
    if (here < most)
      verification.add(each->rank(), "pushes", each->rank().pushes.size(),
                       fmt::format("{} pushes of worker {} where another server has {}", here, worker.index, most));
  }
}

void add_worker_figures(const RunData& run, const Contract& contract, Verification& verification) {
  struct Sums {
    std::uint64_t pushes = 0;
    double staleness = 0, delay_ns = 0;
  };
  std::vector<Sums> sums(contract.pushers());
  std::vector<WorkerFigures> figures(contract.pushers());
  for (const auto* server : run.servers()) {
    for (const auto& push : server->pushes) {
      if (push.worker >= contract.pushers()) continue;
      ++sums[push.worker].pushes;
      sums[push.worker].staleness += push.staleness;
      figures[push.worker].staleness_max = std::max(figures[push.worker].staleness_max, push.staleness);
    }
    for (const auto& pull : server->server_pulls) {
      if (pull.worker >= contract.pushers()) continue;
      auto& own = figures[pull.worker];
      ++own.pulls;
      if (pull.delayed == 0 || pull.answer_ns < pull.request_ns) continue;
      ++own.delayed;
      sums[pull.worker].delay_ns += static_cast<double>(pull.answer_ns - pull.request_ns);
      own.delay_max_ns = std::max(own.delay_max_ns, pull.answer_ns - pull.request_ns);
    }
  }
  for (const auto* worker : run.workers()) {
    if (worker->index >= contract.workers()) continue;
    const auto pusher = contract.pusher_of(worker->index);
    auto own = contract.exchanges(worker->index) ? figures[pusher] : WorkerFigures{};
    own.index = worker->index;
    own.iterations = worker->iterations.size();
    const auto sum = contract.exchanges(worker->index) ? sums[pusher] : Sums{};
    if (sum.pushes > 0) own.staleness_mean = sum.staleness / static_cast<double>(sum.pushes);
    if (own.delayed > 0) own.delay_mean_ns = sum.delay_ns / static_cast<double>(own.delayed);
    verification.workers.push_back(own);
  }
}

/// A shard of every server: together they are the parameters.
void check_bytes(const RunData& run, const Contract& contract, Verification& verification) {
  std::uint64_t bytes = 0;
  std::size_t known = 0;
  for (const auto* each : run.servers()) {
    if (each->pushes.empty()) continue;
    bytes += each->pushes.front().bytes;
    ++known;
  }
  if (contract.parameters() == 0 || known != contract.servers() || bytes == contract.parameters() * sizeof(float))
    return;
  verification.add(*run.servers().front(), "pushes", 0,
                   fmt::format("one push to all servers has {} bytes where {} parameters have {}", bytes,
                               contract.parameters(), contract.parameters() * sizeof(float)));
}

/// The same run with iterations and V counted from `first`.
RunData count_from(RunData run, Iteration first) {
  const auto offset = static_cast<std::uint32_t>(first);
  for (auto& rank : run.ranks) {
    for (auto& row : rank.iterations) row.iteration -= offset;
    for (auto& row : rank.worker_pulls) {
      row.iteration -= offset;
      row.v -= offset;
    }
    for (auto& row : rank.pushes) row.iteration -= offset;
    for (auto& row : rank.server_pulls) {
      row.iteration -= offset;
      row.v_request -= offset;
      row.v_answer -= offset;
    }
    for (auto& row : rank.advances) row.v -= offset;
  }
  return run;
}

void note_gaps(const RunData& run, const Contract& contract, Verification& verification) {
  if (run.servers().size() < contract.servers() || run.workers().size() < contract.workers())
    verification.weak.push_back(fmt::format("the traces of {} of {} servers and {} of {} workers are at hand",
                                            run.servers().size(), contract.servers(), run.workers().size(),
                                            contract.workers()));
  const auto open = std::count_if(run.ranks.begin(), run.ranks.end(), [](const auto& each) { return !each.done; });
  if (open > 0)
    verification.weak.push_back(
        fmt::format("{} of {} ranks have not closed their traces; missing rows at the end are no violation", open,
                    run.ranks.size()));
  for (const auto& note : run.notes) verification.weak.push_back(note);
}

}  // namespace

void Verification::add(const RankData& rank, const char* table, std::uint64_t row, std::string text) {
  ++violation_count;
  if (violations.size() < kMostViolations) violations.push_back({rank.name, table, row, std::move(text)});
}

Verification verify(const RunData& given) {
  const Contract contract(given);
  std::optional<RunData> shifted;
  if (contract.first_iteration() > 0) shifted = count_from(given, contract.first_iteration());
  const auto& run = shifted ? *shifted : given;
  Verification verification;
  if (shifted)
    verification.proved.push_back(fmt::format("a resumed run: iterations and V below are counted from its first, {}",
                                              contract.first_iteration()));
  if (contract.grouped())
    verification.proved.push_back(
        fmt::format("{} local groups of {} workers: servers count the pushes of groups, below "
                    "on the first worker of each",
                    contract.pushers(), contract.workers()));
  note_gaps(run, contract, verification);
  std::vector<std::unique_ptr<ServerCheck>> checks;
  std::vector<const ServerCheck*> servers(contract.servers(), nullptr);
  for (const auto* rank : run.servers()) {
    if (rank->index >= contract.servers() || servers[rank->index] != nullptr) {
      verification.add(*rank, "attributes", 0, fmt::format("a second or unknown server {}", rank->index));
      continue;
    }
    checks.push_back(std::make_unique<ServerCheck>(*rank, contract, verification));
    servers[rank->index] = checks.back().get();
    checks.back()->run();
  }
  for (const auto* rank : run.workers()) {
    if (rank->index >= contract.workers()) {
      verification.add(*rank, "attributes", 0, fmt::format("an unknown worker {}", rank->index));
      continue;
    }
    check_worker(*rank, contract, servers, verification);
    compare_servers(*rank, contract.pusher_of(rank->index), servers, verification);
  }
  add_worker_figures(run, contract, verification);
  check_bytes(run, contract, verification);
  return verification;
}

std::string to_text(const Verification& v, std::size_t most_lines) {
  std::string text;
  for (const auto& each : v.proved) text += fmt::format("checked    {}\n", each);
  for (const auto& each : v.weak) text += fmt::format("not proved {}\n", each);
  text += fmt::format("\n{:>6} {:>9} {:>9} {:>9} {:>6} {:>7} {:>8} {:>10} {:>6} {:>13} {:>12}\n", "server", "pushes",
                      "pulls", "V", "late", "dropped", "delayed", "staleness", "max", "delay mean ms", "delay max ms");
  for (const auto& s : v.servers)
    text += fmt::format("{:>6} {:>9} {:>9} {:>9} {:>6} {:>7} {:>8} {:>10.3f} {:>6} {:>13.3f} {:>12.3f}\n", s.index,
                        s.pushes, s.pulls, s.advances, s.late, s.dropped, s.delayed, s.staleness_mean, s.staleness_max,
                        s.delay_mean_ns * 1e-6, static_cast<double>(s.delay_max_ns) * 1e-6);
  text += fmt::format("\n{:>6} {:>10} {:>9} {:>8} {:>10} {:>6} {:>13} {:>12}\n", "worker", "iterations", "pulls",
                      "delayed", "staleness", "max", "delay mean ms", "delay max ms");
  for (const auto& w : v.workers)
    text += fmt::format("{:>6} {:>10} {:>9} {:>8} {:>10.3f} {:>6} {:>13.3f} {:>12.3f}\n", w.index, w.iterations,
                        w.pulls, w.delayed, w.staleness_mean, w.staleness_max, w.delay_mean_ns * 1e-6,
                        static_cast<double>(w.delay_max_ns) * 1e-6);
  text += '\n';
  const auto shown = std::min(most_lines, v.violations.size());
  for (std::size_t k = 0; k < shown; ++k)
    text += fmt::format("VIOLATION  {} /{} row {}: {}\n", v.violations[k].rank, v.violations[k].table,
                        v.violations[k].row, v.violations[k].text);
  if (v.violation_count > shown) text += fmt::format("... and {} more violations\n", v.violation_count - shown);
  if (!v.holds())
    text += fmt::format("NOT verified: {} violations\n", v.violation_count);
  else
    text += v.weak.empty() ? "verified: no violation\n" : "no violation; see above what is not proved\n";
  return text;
}

}  // namespace fluentps::trace
