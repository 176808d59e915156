/// The buffer of delayed pull requests (DPRs). One worker has at most one, so they are chained through an array by
/// worker: nothing is allocated per request, and a release costs O(1).
///
///   by iteration i   pulls waiting at i, counted; and the chain of those to be released at V = i + 1
///   by worker w      the chain of those that w's next push or leaving may release
///   unscheduled      those to be asked about at every event
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fluentps/types.hpp"
#include "sync/controller.hpp"
#include "sync/iteration_window.hpp"

namespace fluentps {

class DelayedPulls {
 public:
  /// `v`: V at the start.
  explicit DelayedPulls(std::uint32_t workers, Iteration v = 0) : entries_(workers), window_(v), watchers_(workers) {}

  bool waits(WorkerIndex worker) const { return entries_[worker.value].waits; }
  /// Whether any pull of iteration i >= V waits.
  bool any_at(Iteration i) const { return window_.contains(i) && window_[i].waiting > 0; }
  /// Files a pull under the V that releases it; V < release_at <= pull.iteration + 1.
  void file(const Grant& pull, Iteration release_at);
  /// Keeps a pull that is to be asked about when `waits_for` pushes or leaves, or else at every event.
  void file_unscheduled(const Grant& pull, std::optional<WorkerIndex> waits_for);
  /// Keeps a pull that waits only because others wait at its iteration.
  void file_joined(const Grant& pull);
  /// V has become v: appends what was filed under it, first filed first.
  void advance(Iteration v, std::vector<Grant>& released);

  /// Asks about a pull that is not filed under a V.
  class Condition {
   public:
    virtual ~Condition() = default;
    virtual bool may_go(WorkerIndex worker, Iteration i) const = 0;
    virtual std::optional<WorkerIndex> waits_for(WorkerIndex worker, Iteration i) const = 0;
  };
  /// Whether recheck has anything to ask.
  bool has_unscheduled() const { return unscheduled_count_ > 0; }
  /// Appends the pulls that may go after `worker` has pushed or left (nullopt: after time has passed).
  void recheck(std::optional<WorkerIndex> worker, const Condition& condition, std::vector<Grant>& released);

  /// By worker.
  std::vector<Grant> waiting() const;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Entry {
    Iteration iteration = 0;
    Iteration v_request = 0;
    std::uint32_t next = kNone;  ///< in its chain
    bool waits = false;
    bool joined = false;
    bool scheduled = false;  ///< filed under a V
  };
  struct Chain {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  struct Slot {
    std::uint32_t waiting = 0;
    std::uint32_t own = 0;  ///< of them, neither scheduled nor joined
    Chain due;
  };

  Entry& remember(const Grant& pull);
  Grant forget(std::uint32_t worker);
  void append(Chain& chain, std::uint32_t worker);
  void keep_unscheduled(std::uint32_t worker, std::optional<WorkerIndex> waits_for);
  void recheck_chain(Chain& chain, const Condition& condition, std::vector<Grant>& released);

  std::vector<Entry> entries_;
  IterationWindow<Slot> window_;  ///< begins at V
  std::vector<Chain> watchers_;   ///< by the worker waited for
  Chain unscheduled_;
  std::uint32_t unscheduled_count_ = 0;  ///< in all of these chains
  bool overdue_ = false;                 ///< V has passed an iteration at which some of them wait
};

}  // namespace fluentps
