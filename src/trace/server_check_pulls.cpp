/// The server's side of verify: pulls, their conditions, and the staleness that follows from them.
#include <fmt/format.h>

#include <algorithm>

#include "trace/server_check.hpp"

namespace fluentps::trace {
namespace {

constexpr auto kNone = WorkerHistory::kNone;

}  // namespace

/// A worker's pulls come in the order of its iterations, each after its own push.
void ServerCheck::read_pulls() {
  std::uint64_t before_ns = 0;
  for (std::uint64_t row = 0; row < rank_.server_pulls.size(); ++row) {
    const auto& pull = rank_.server_pulls[row];
    if (pull.worker >= contract_.pushers()) {
      violate("pulls", row, fmt::format("worker {} where there are {}", pull.worker, contract_.pushers()));
      continue;
    }
    auto& history = histories_[pull.worker];
    if (pull.iteration < history.pull_row.size()) {
      violate("pulls", row,
              fmt::format("iteration {} of worker {} was answered before, or a later one was", pull.iteration,
                          pull.worker));
      continue;
    }
    const bool pushed = pull.iteration < history.pushed_ns.size() && history.pushed_ns[pull.iteration] != kNone;
    if (pushed ? history.pushed_ns[pull.iteration] > pull.answer_ns : rank_.done)
      violate("pulls", row,
              fmt::format("worker {} was answered at iteration {} before its own push was applied", pull.worker,
                          pull.iteration));
    if (pull.request_ns > pull.answer_ns)
      violate("pulls", row,
              fmt::format("answered at {} ns, before the request at {} ns", pull.answer_ns, pull.request_ns));
    if (pull.answer_ns < before_ns)
      violate("pulls", row,
              fmt::format("answered at {} ns, before the row above it at {} ns", pull.answer_ns, before_ns));
    before_ns = std::max(before_ns, pull.answer_ns);
    last_event_ns_[pull.worker] = std::max(last_event_ns_[pull.worker], pull.answer_ns);
    if (pull.iteration > rank_.pushes.size() + rank_.server_pulls.size()) continue;
    history.pull_row.resize(pull.iteration, kNone);
    history.pull_row.push_back(row);
  }
}

void ServerCheck::check_pulls() {
  ReplayState state(contract_.pushers(), contract_.coin_seed(rank_.index), contract_.first_iteration());
  state.last_event_ns = last_event_ns_;
  std::size_t next = 0;
  for (std::uint64_t row = 0; row < rank_.server_pulls.size(); ++row) {
    const auto& pull = rank_.server_pulls[row];
    if (pull.worker >= contract_.pushers()) continue;
    replay_until(pull.answer_ns, state, next, [](const PushRow&, const ReplayState&) {});
    state.time_ns = pull.answer_ns;
    check_clock(row);
    check_condition(row, state);
  }
}

/// V as the pull saw it is V as the advances tell it.
void ServerCheck::check_clock(std::uint64_t row) {
  const auto& pull = rank_.server_pulls[row];
  const auto least = advances_before(pull.answer_ns);
  const auto most = advances_until(pull.answer_ns);
  const bool cut = !rank_.done && most == advance_ns_.size();
  if (pull.v_answer < least || (pull.v_answer > most && !cut))
    violate("pulls", row, fmt::format("answered at V = {} where the advances give {}", pull.v_answer, most));
  if (pull.v_request > pull.v_answer)
    violate("pulls", row,
            fmt::format("V was {} at the request and {} at the answer; it never falls", pull.v_request, pull.v_answer));
  if (pull.v_request < advances_before(pull.request_ns))
    violate(
        "pulls", row,
        fmt::format("asked at V = {} where the advances give {}", pull.v_request, advances_before(pull.request_ns)));
  if (pull.delayed == 0 && pull.v_request != pull.v_answer)
    violate("pulls", row,
            fmt::format("not marked delayed though V went from {} to {} meanwhile", pull.v_request, pull.v_answer));
}

void ServerCheck::check_condition(std::uint64_t row, ReplayState& state) {
  const auto& pull = rank_.server_pulls[row];
  const auto& stretch = Contract::at(stretches_, pull.iteration);
  const Iteration i = pull.iteration;
  const WorkerIndex worker{pull.worker};
  if (!stretch.model || stretch.proof == Proof::kNone) return;
  const auto holds = [&](Iteration v, bool released) {
    state.clock = v;
    if (i < v) return true;
    if (stretch.proof == Proof::kBound) return i < v + stretch.bound;
    return released ? stretch.model->may_release(state, worker, i) : stretch.model->may_pull(state, worker, i);
  };
  const auto refuse = [&](const char* how) {
    violate("pulls", row,
            fmt::format("worker {} at iteration {} was answered at V = {}: {} {}", pull.worker, i, pull.v_answer,
                        stretch.model->spec(), how));
  };
  if (pull.delayed == 0) {
    const bool slower = contract_.only_fastest() && i + 1 < state.fastest();
    if (!slower && !holds(pull.v_answer, false)) refuse("does not allow it");
    return;
  }
  if (contract_.release() == Release::kLazy ? i >= pull.v_answer : !holds(pull.v_answer, true))
    refuse(contract_.release() == Release::kLazy ? "releases lazily at V > i only" : "does not allow its release");
  // Whether it had to wait depends, in these cases, on what a trace does not hold.
  const auto name = stretch.model->spec();
  if (contract_.join() || contract_.only_fastest() || stretch.proof != Proof::kExact || name.starts_with("psp:"))
    return;
  if (holds(pull.v_request, false))
    violate("pulls", row,
            fmt::format("worker {} at iteration {} was delayed at V = {} though {} allowed the answer", pull.worker, i,
                        pull.v_request, name));
}

/// staleness of the push of iteration i = i - V at the pull of i - 1, which gave the weights it was computed from.
void ServerCheck::check_staleness() {
  for (const auto row : good_) {
    const auto& push = rank_.pushes[row];
    const auto& pulls = histories_[push.worker].pull_row;
    if (push.iteration == 0 || push.iteration > pulls.size() || pulls[push.iteration - 1] == kNone) continue;
    const Iteration v = rank_.server_pulls[pulls[push.iteration - 1]].v_answer;
    const auto expected = std::max<Iteration>(0, static_cast<Iteration>(push.iteration) - v);
    if (push.staleness != expected)
      violate("pushes", row,
              fmt::format("staleness {} where iteration {} and V = {} at its pull give {}", push.staleness,
                          push.iteration, v, expected));
  }
}

}  // namespace fluentps::trace
