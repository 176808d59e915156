/// The buffer of delayed pull requests.
#include "sync/delayed_pulls.hpp"

#include <utility>

namespace fluentps {

DelayedPulls::Entry& DelayedPulls::remember(const Grant& pull) {
  window_.reach(pull.iteration);
  ++window_[pull.iteration].waiting;
  auto& entry = entries_[pull.worker.value];
  entry = {.iteration = pull.iteration, .v_request = pull.v_request, .waits = true};
  return entry;
}

Grant DelayedPulls::forget(std::uint32_t worker) {
  auto& entry = entries_[worker];
  entry.waits = false;
  if (!entry.scheduled) --unscheduled_count_;
  if (window_.contains(entry.iteration)) {
    auto& slot = window_[entry.iteration];
    --slot.waiting;
    if (!entry.scheduled && !entry.joined) --slot.own;
  }
  return {.worker = WorkerIndex{worker}, .iteration = entry.iteration, .v_request = entry.v_request, .delayed = true};
}

void DelayedPulls::append(Chain& chain, std::uint32_t worker) {
  entries_[worker].next = kNone;
  (chain.first == kNone ? chain.first : entries_[chain.last].next) = worker;
  chain.last = worker;
}

void DelayedPulls::keep_unscheduled(std::uint32_t worker, std::optional<WorkerIndex> waits_for) {
  append(waits_for ? watchers_[waits_for->value] : unscheduled_, worker);
}

void DelayedPulls::file(const Grant& pull, Iteration release_at) {
  remember(pull).scheduled = true;
  append(window_[release_at - 1].due, pull.worker.value);
}

void DelayedPulls::file_unscheduled(const Grant& pull, std::optional<WorkerIndex> waits_for) {
  remember(pull);
  ++window_[pull.iteration].own;
  ++unscheduled_count_;
  keep_unscheduled(pull.worker.value, waits_for);
}

void DelayedPulls::file_joined(const Grant& pull) {
  remember(pull).joined = true;
  ++unscheduled_count_;
  keep_unscheduled(pull.worker.value, std::nullopt);
}

void DelayedPulls::advance(Iteration v, std::vector<Grant>& released) {
  while (window_.begin() < v) {
    window_.reach(window_.begin());
    const auto chain = window_[window_.begin()].due;
    for (auto worker = chain.first; worker != kNone; worker = entries_[worker].next) released.push_back(forget(worker));
    if (window_[window_.begin()].waiting > 0) overdue_ = true;
    window_.pop_front();
  }
}

void DelayedPulls::recheck_chain(Chain& chain, const Condition& condition, std::vector<Grant>& released) {
  auto worker = std::exchange(chain, {}).first;
  while (worker != kNone) {
    const auto& entry = entries_[worker];
    const auto next = entry.next;
    const auto i = entry.iteration;
    if (i < window_.begin())
      released.push_back(forget(worker));
    else if (entry.joined && window_[i].own > 0)
      keep_unscheduled(worker, std::nullopt);
    else if (condition.may_go({worker}, i))
      released.push_back(forget(worker));
    else
      keep_unscheduled(worker, condition.waits_for({worker}, i));
    worker = next;
  }
}

void DelayedPulls::recheck(std::optional<WorkerIndex> worker, const Condition& condition,
                           std::vector<Grant>& released) {
  if (overdue_) {
    for (auto& chain : watchers_) recheck_chain(chain, condition, released);
    overdue_ = false;
  } else if (worker) {
    recheck_chain(watchers_[worker->value], condition, released);
  }
  recheck_chain(unscheduled_, condition, released);
}

std::vector<Grant> DelayedPulls::waiting() const {
  std::vector<Grant> pulls;
  for (std::uint32_t w = 0; w < entries_.size(); ++w) {
    const auto& entry = entries_[w];
    if (!entry.waits) continue;
    pulls.push_back(
        {.worker = WorkerIndex{w}, .iteration = entry.iteration, .v_request = entry.v_request, .delayed = true});
  }
  return pulls;
}

}  // namespace fluentps
