/// The buffer of delayed pull requests.
#include "sync/delayed_pulls.hpp"

namespace fluentps {

DelayedPulls::Entry& DelayedPulls::remember(const Grant& pull) {
  window_.reach(pull.iteration);
  ++window_[pull.iteration].waiting;
  auto& entry = entries_[pull.worker.value];
  entry = {.iteration = pull.iteration, .v_request = pull.v_request, .next = kNone, .waits = true, .joined = false};
  return entry;
}

Grant DelayedPulls::forget(std::uint32_t worker) {
  auto& entry = entries_[worker];
  entry.waits = false;
  const auto i = entry.iteration;
  if (window_.contains(i)) --window_[i].waiting;
  return {.worker = WorkerIndex{worker}, .iteration = i, .v_request = entry.v_request, .delayed = true};
}

void DelayedPulls::file(const Grant& pull, Iteration release_at) {
  remember(pull);
  auto& slot = window_[release_at - 1];
  if (slot.first == kNone)
    slot.first = pull.worker.value;
  else
    entries_[slot.last].next = pull.worker.value;
  slot.last = pull.worker.value;
}

void DelayedPulls::file_unscheduled(const Grant& pull, bool joined) {
  remember(pull).joined = joined;
  if (!joined) ++window_[pull.iteration].own;
  unscheduled_.push_back(pull.worker.value);
}

void DelayedPulls::advance(Iteration v, std::vector<Grant>& released) {
  while (window_.begin() < v) {
    window_.reach(window_.begin());
    auto worker = window_[window_.begin()].first;
    window_.pop_front();
    while (worker != kNone) {
      const auto next = entries_[worker].next;
      released.push_back(forget(worker));
      worker = next;
    }
  }
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
