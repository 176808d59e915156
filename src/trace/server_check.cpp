/// The server's side of verify: pushes and the clock. Pulls: server_check_pulls.cpp.
#include "trace/server_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fluentps::trace {
namespace {

constexpr auto kNone = WorkerHistory::kNone;

/// N workers, none of which has left, `pushes` of which have pushed V.
class FullState final : public SyncState {
 public:
  FullState(std::uint32_t workers, std::uint32_t pushes) : workers_(workers), pushes_(pushes) {}
  std::uint32_t workers() const override { return workers_; }
  std::uint32_t active_workers() const override { return workers_; }
  bool active(WorkerIndex) const override { return true; }
  Iteration v() const override { return 0; }
  Iteration progress(WorkerIndex worker) const override { return worker.value < pushes_ ? 1 : 0; }
  Iteration fastest() const override { return pushes_ > 0 ? 1 : 0; }
  std::uint32_t count(Iteration) const override { return pushes_; }
  std::uint32_t active_count(Iteration) const override { return pushes_; }
  std::int64_t now_ns() const override { return 0; }
  std::optional<std::int64_t> first_push_ns() const override { return std::nullopt; }
  double coin(WorkerIndex, Iteration) const override { return 0; }

 private:
  std::uint32_t workers_;
  std::uint32_t pushes_;
};

std::uint32_t pushes_needed(const Stretch& stretch, std::uint32_t workers) {
  if (!stretch.model || stretch.proof == Proof::kNone || !stretch.advances_at_once) return 0;
  for (std::uint32_t pushes = 1; pushes <= workers; ++pushes)
    if (stretch.model->may_advance(FullState(workers, pushes))) return pushes;
  return 0;
}

void set(std::vector<std::uint64_t>& values, std::size_t at, std::uint64_t value) {
  if (at >= values.size()) values.resize(at + 1, kNone);
  values[at] = value;
}

}  // namespace

ServerCheck::ServerCheck(const RankData& rank, const Contract& contract, Verification& verification)
    : rank_(rank),
      contract_(contract),
      verification_(verification),
      stretches_(contract.stretches(rank.index)),
      histories_(contract.pushers()),
      last_event_ns_(contract.pushers(), 0) {
  for (const auto& each : stretches_) needed_.push_back(pushes_needed(each, contract.pushers()));
}

void ServerCheck::run() {
  contract_.describe(rank_.index, verification_);
  read_pushes();
  read_pulls();
  for (const auto& each : rank_.advances)
    advance_ns_.push_back(std::max(each.time_ns, advance_ns_.empty() ? 0 : advance_ns_.back()));
  check_advances();
  check_late();
  check_pulls();
  check_staleness();
  check_end();
  add_figures();
}

/// Each worker's iterations must come once each and in order; what does not is named and kept out of the replay.
void ServerCheck::read_pushes() {
  std::uint64_t before_ns = 0;
  for (std::uint64_t row = 0; row < rank_.pushes.size(); ++row) {
    const auto& push = rank_.pushes[row];
    if (!push_row_fits(row, before_ns)) continue;
    const auto time_ns = push.applied_ns == 0 ? before_ns : std::max(push.applied_ns, before_ns);
    before_ns = time_ns;
    good_.push_back(row);
    push_ns_.push_back(time_ns);
    set(histories_[push.worker].pushed_ns, push.iteration, time_ns);
    last_event_ns_[push.worker] = std::max(last_event_ns_[push.worker], time_ns);
  }
}

bool ServerCheck::push_row_fits(std::uint64_t row, std::uint64_t before_ns) {
  const auto& push = rank_.pushes[row];
  if (push.worker >= contract_.pushers()) {
    violate("pushes", row, fmt::format("worker {} where there are {}", push.worker, contract_.pushers()));
    return false;
  }
  const auto expected = histories_[push.worker].pushed_ns.size();
  if (push.iteration < expected && histories_[push.worker].pushed_ns[push.iteration] != kNone) {
    violate("pushes", row, fmt::format("iteration {} of worker {} was applied before", push.iteration, push.worker));
    return false;
  }
  if (push.iteration != expected)
    violate("pushes", row,
            fmt::format("iteration {} of worker {} where {} was expected", push.iteration, push.worker, expected));
  if (push.iteration >= rank_.pushes.size()) return false;
  const auto& stretch = Contract::at(stretches_, push.iteration);
  const bool drops = stretch.model && stretch.model->aggregation().kind == Aggregation::Kind::kFirstArrivals;
  const bool dropped = push.applied_ns == 0;
  if (stretch.model && dropped != (drops && push.late != 0))
    violate("pushes", row,
            fmt::format("iteration {} of worker {} was {} though {}", push.iteration, push.worker,
                        dropped ? "dropped" : "applied",
                        dropped ? "nothing permits it" : "it was late and late pushes are dropped"));
  if (!dropped && push.arrive_ns > push.applied_ns)
    violate("pushes", row,
            fmt::format("applied at {} ns, before it arrived at {} ns", push.applied_ns, push.arrive_ns));
  if (!dropped && push.applied_ns < before_ns)
    violate("pushes", row,
            fmt::format("applied at {} ns, before the row above it at {} ns", push.applied_ns, before_ns));
  if (push.bytes != rank_.pushes.front().bytes)
    violate("pushes", row, fmt::format("{} bytes where the first push had {}", push.bytes, rank_.pushes.front().bytes));
  return true;
}

/// V goes up by one, never before its condition holds, and not later than the next push.
void ServerCheck::check_advances() {
  ReplayState state(contract_.pushers(), contract_.coin_seed(rank_.index), contract_.first_iteration());
  state.last_event_ns = last_event_ns_;
  std::size_t next = 0;
  const auto note = [this, &next](const PushRow& push, const ReplayState& at) {
    const auto k = static_cast<std::size_t>(&Contract::at(stretches_, push.iteration) - stretches_.data());
    if (push.late == 0 && needed_[k] > 0 && at.count(push.iteration) == needed_[k])
      set(complete_ns_, push.iteration, push_ns_[next]);
  };
  for (std::uint64_t row = 0; row < rank_.advances.size(); ++row) {
    const auto& advance = rank_.advances[row];
    if (advance.v != row + 1) {
      violate("advances", row, fmt::format("V is {} where {} was expected; it rises by one", advance.v, row + 1));
      return;
    }
    if (advance.time_ns < advance_ns_[row])
      violate("advances", row, fmt::format("at {} ns, before the row above it", advance.time_ns));
    replay_until(advance_ns_[row], state, next, note);
    state.clock = static_cast<Iteration>(row);
    state.time_ns = advance_ns_[row];
    const auto& stretch = Contract::at(stretches_, state.clock);
    const bool may = stretch.model ? stretch.model->may_advance(state) : state.fastest() > state.clock;
    if (!may || state.fastest() <= state.clock)
      violate("advances", row,
              fmt::format("V reached {} when {} of {} workers had pushed iteration {}", advance.v,
                          state.count(state.clock), contract_.pushers(), state.clock));
    check_promptness(row);
  }
  replay_until(kNone, state, next, note);
}

/// With all workers' pushes in, V has moved before anything else is applied.
void ServerCheck::check_promptness(std::uint64_t row) {
  if (row >= complete_ns_.size() || complete_ns_[row] == kNone) return;
  const auto due_ns = std::max(complete_ns_[row], row == 0 ? 0 : advance_ns_[row - 1]);
  const auto following = std::upper_bound(push_ns_.begin(), push_ns_.end(), due_ns);
  if (following == push_ns_.end() || advance_ns_[row] <= *following) return;
  violate(
      "advances", row,
      fmt::format("V reached {} at {} ns though its pushes were complete at {} ns", row + 1, advance_ns_[row], due_ns));
}

/// late = 1 exactly where i < V on arrival, as far as the times tell.
void ServerCheck::check_late() {
  for (std::size_t k = 0; k < good_.size(); ++k) {
    const auto& push = rank_.pushes[good_[k]];
    const auto v_least = advances_before(push_ns_[k]);
    if (push.late == 0) {
      if (push.iteration < v_least)
        violate("pushes", good_[k],
                fmt::format("not marked late though V was {} and the iteration {}", v_least, push.iteration));
      continue;
    }
    std::size_t following = k;  // a dropped push has no time of its own: it came before the next one that has
    while (following < good_.size() && rank_.pushes[good_[following]].applied_ns == 0) ++following;
    const auto v_most = following < good_.size() ? advances_until(push_ns_[following]) : advance_ns_.size();
    if (push.iteration >= v_most && rank_.done)
      violate("pushes", good_[k],
              fmt::format("marked late though V was {} and the iteration {}", v_most, push.iteration));
  }
}

/// Where the server closed its trace nothing may be missing at the end.
void ServerCheck::check_end() {
  if (!rank_.done || !stretches_.front().model) return;
  std::uint64_t all_have = kNone;
  for (const auto& each : histories_) all_have = std::min<std::uint64_t>(all_have, each.pushed_ns.size());
  if (rank_.advances.size() < all_have)
    violate("advances", rank_.advances.size(),
            fmt::format("the table ends with V = {} though every worker has pushed {} iterations",
                        rank_.advances.size(), all_have));
}

std::uint64_t ServerCheck::advances_before(std::uint64_t time_ns) const {
  return static_cast<std::uint64_t>(std::lower_bound(advance_ns_.begin(), advance_ns_.end(), time_ns) -
                                    advance_ns_.begin());
}
std::uint64_t ServerCheck::advances_until(std::uint64_t time_ns) const {
  return static_cast<std::uint64_t>(std::upper_bound(advance_ns_.begin(), advance_ns_.end(), time_ns) -
                                    advance_ns_.begin());
}

void ServerCheck::add_figures() {
  ServerFigures figures{.index = rank_.index,
                        .pushes = rank_.pushes.size(),
                        .pulls = rank_.server_pulls.size(),
                        .advances = rank_.advances.size()};
  double staleness = 0;
  for (const auto& push : rank_.pushes) {
    figures.late += push.late != 0 ? 1 : 0;
    figures.dropped += push.applied_ns == 0 ? 1 : 0;
    figures.staleness_max = std::max(figures.staleness_max, push.staleness);
    staleness += push.staleness;
  }
  double delay_ns = 0;
  for (const auto& pull : rank_.server_pulls) {
    if (pull.delayed == 0 || pull.answer_ns < pull.request_ns) continue;
    ++figures.delayed;
    figures.delay_max_ns = std::max(figures.delay_max_ns, pull.answer_ns - pull.request_ns);
    delay_ns += static_cast<double>(pull.answer_ns - pull.request_ns);
  }
  if (figures.pushes > 0) figures.staleness_mean = staleness / static_cast<double>(figures.pushes);
  if (figures.delayed > 0) figures.delay_mean_ns = delay_ns / static_cast<double>(figures.delayed);
  verification_.servers.push_back(figures);
}

}  // namespace fluentps::trace
