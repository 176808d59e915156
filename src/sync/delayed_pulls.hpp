/// The buffer of delayed pull requests (DPRs). One worker has at most one, so they are chained through an array by
/// worker: nothing is allocated per request, and a release costs O(1).
///
///   slot of iteration i:   pulls waiting at i (counted);   first -> next -> ... -> last: to be released at V = i + 1
#pragma once

#include <cstdint>
#include <vector>

#include "fluentps/types.hpp"
#include "sync/controller.hpp"
#include "sync/iteration_window.hpp"

namespace fluentps {

class DelayedPulls {
 public:
  explicit DelayedPulls(std::uint32_t workers) : entries_(workers) {}

  bool waits(WorkerIndex worker) const { return entries_[worker.value].waits; }
  /// Whether any pull of iteration i >= V waits.
  bool any_at(Iteration i) const { return window_.contains(i) && window_[i].waiting > 0; }
  /// Files a pull under the V that releases it; V < release_at <= pull.iteration + 1.
  void file(const Grant& pull, Iteration release_at);
  /// Keeps a pull that is to be asked about at every event. `joined`: it waits only because another one does.
  void file_unscheduled(const Grant& pull, bool joined);
  /// V has become v: appends what was filed under it, first filed first.
  void advance(Iteration v, std::vector<Grant>& released);
  /// Appends the unscheduled pulls for which may_go(pull) holds, or that only joined pulls that are gone.
  template <typename MayGo>
  void recheck(const MayGo& may_go, std::vector<Grant>& released);
  std::vector<Grant> waiting() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Entry {
    Iteration iteration = 0;
    Iteration v_request = 0;
    std::uint32_t next = kNone;
    bool waits = false;
    bool joined = false;
  };
  struct Slot {
    std::uint32_t waiting = 0;
    std::uint32_t own = 0;  ///< of them, unscheduled and not joined
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };

  Entry& remember(const Grant& pull);
  Grant forget(std::uint32_t worker);

  std::vector<Entry> entries_;
  IterationWindow<Slot> window_;            ///< begins at V
  std::vector<std::uint32_t> unscheduled_;  ///< workers, first filed first
};

template <typename MayGo>
void DelayedPulls::recheck(const MayGo& may_go, std::vector<Grant>& released) {
  std::size_t kept = 0;
  for (const auto worker : unscheduled_) {
    const auto& entry = entries_[worker];
    const auto i = entry.iteration;
    const bool blocked =
        i >= window_.begin() && ((entry.joined && window_[i].own > 0) || !may_go(WorkerIndex{worker}, i));
    if (blocked) {
      unscheduled_[kept++] = worker;
    } else {
      if (!entry.joined && window_.contains(i)) --window_[i].own;
      released.push_back(forget(worker));
    }
  }
  unscheduled_.resize(kept);
}

}  // namespace fluentps
