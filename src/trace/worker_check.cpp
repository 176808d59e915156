/// The worker's side of verify.
#include "trace/worker_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fluentps::trace {
namespace {

constexpr auto kNone = WorkerHistory::kNone;

class WorkerCheck {
 public:
  WorkerCheck(const RankData& rank, const Contract& contract, const std::vector<const ServerCheck*>& servers,
              Verification& verification)
      : rank_(rank), contract_(contract), servers_(servers), verification_(verification), seen_(servers.size()) {}

  void run() {
    check_iterations();
    check_pulls();
    for (std::uint32_t m = 0; m < servers_.size(); ++m)
      if (servers_[m] != nullptr) compare(*servers_[m], m);
  }

 private:
  void violate(const char* table, std::uint64_t row, std::string text) {
    verification_.add(rank_, table, row, std::move(text));
  }
  /// Its group's pushes are its own.
  std::string pusher() const {
    return contract_.grouped() ? fmt::format("the local group of worker {}", rank_.index)
                               : fmt::format("worker {}", rank_.index);
  }
  void check_iterations();
  void check_pulls();
  void check_times(std::uint64_t row);
  void match(std::uint64_t row);
  void compare(const ServerCheck& server, std::uint32_t m);

  const RankData& rank_;
  const Contract& contract_;
  const std::vector<const ServerCheck*>& servers_;
  Verification& verification_;
  std::vector<std::vector<bool>> seen_;  ///< per server and iteration: there is a row of this pull
};

void WorkerCheck::check_iterations() {
  for (std::uint64_t row = 0; row < rank_.iterations.size(); ++row) {
    const auto& iteration = rank_.iterations[row];
    if (iteration.iteration != row) {
      violate("iterations", row, fmt::format("iteration {} where {} was expected", iteration.iteration, row));
      return;
    }
    if (row > 0 && iteration.begin_ns < rank_.iterations[row - 1].begin_ns)
      violate("iterations", row, "begins before the row above it");
  }
}

void WorkerCheck::check_pulls() {
  for (std::uint64_t row = 0; row < rank_.worker_pulls.size(); ++row) {
    const auto& pull = rank_.worker_pulls[row];
    if (pull.server >= servers_.size()) {
      violate("pulls", row, fmt::format("server {} where there are {}", pull.server, servers_.size()));
      continue;
    }
    auto& seen = seen_[pull.server];
    if (pull.iteration < seen.size()) {
      violate(
          "pulls", row,
          fmt::format("iteration {} of server {} was pulled before, or a later one was", pull.iteration, pull.server));
      continue;
    }
    check_times(row);
    if (pull.iteration > rank_.worker_pulls.size() + rank_.iterations.size()) {
      violate("pulls", row, fmt::format("iteration {} is beyond what the worker has done", pull.iteration));
      continue;
    }
    seen.resize(pull.iteration, false);
    seen.push_back(true);
    match(row);
  }
}

void WorkerCheck::check_times(std::uint64_t row) {
  const auto& pull = rank_.worker_pulls[row];
  if (pull.request_ns > pull.grant_ns || pull.grant_ns > pull.done_ns)
    violate("pulls", row,
            fmt::format("request {} ns, grant {} ns, done {} ns are not in order", pull.request_ns, pull.grant_ns,
                        pull.done_ns));
  if (pull.iteration < rank_.iterations.size() && pull.request_ns < rank_.iterations[pull.iteration].begin_ns)
    violate("pulls", row, fmt::format("asked at {} ns, before its iteration began", pull.request_ns));
}

/// The server tells the same of this pull.
void WorkerCheck::match(std::uint64_t row) {
  const auto& pull = rank_.worker_pulls[row];
  const auto* server = servers_[pull.server];
  if (server == nullptr || rank_.index >= contract_.workers()) return;
  const auto& theirs = server->history(contract_.pusher_of(rank_.index)).pull_row;
  const bool known = pull.iteration < theirs.size() && theirs[pull.iteration] != kNone;
  if (!known) {
    if (server->rank().done)
      violate("pulls", row, fmt::format("{} has no answer to iteration {}", server->rank().name, pull.iteration));
    return;
  }
  const auto v = server->rank().server_pulls[theirs[pull.iteration]].v_answer;
  if (v != pull.v)
    violate(
        "pulls", row,
        fmt::format("V = {} where {} answered iteration {} at V = {}", pull.v, server->rank().name, pull.iteration, v));
}

/// Both have closed their traces: then the server has applied every push of the worker, and the worker has every
/// answer.
void WorkerCheck::compare(const ServerCheck& server, std::uint32_t m) {
  if (!rank_.done || !server.rank().done || rank_.index >= contract_.workers()) return;
  const auto& history = server.history(contract_.pusher_of(rank_.index));
  if (!rank_.iterations.empty() && history.pushed_ns.size() != rank_.iterations.size())
    verification_.add(server.rank(), "pushes", server.rank().pushes.size(),
                      fmt::format("{} pushes of {}, which has done {} iterations", history.pushed_ns.size(), pusher(),
                                  rank_.iterations.size()));
  if (!contract_.exchanges(rank_.index)) {
    if (!rank_.worker_pulls.empty())
      violate("pulls", 0, "it has rows of pulls, which the first worker of its local group makes");
    return;
  }
  for (std::uint64_t i = 0; i < history.pull_row.size(); ++i)
    if (history.pull_row[i] != kNone && (i >= seen_[m].size() || !seen_[m][i]))
      verification_.add(server.rank(), "pulls", history.pull_row[i],
                        fmt::format("{} has no row of its pull of iteration {}", rank_.name, i));
}

}  // namespace

void check_worker(const RankData& rank, const Contract& contract, const std::vector<const ServerCheck*>& servers,
                  Verification& verification) {
  WorkerCheck(rank, contract, servers, verification).run();
}

}  // namespace fluentps::trace
