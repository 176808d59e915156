/// The clocks of one server: V, the progress of every worker and the counts of the iterations from V on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fluentps/sync_model.hpp"
#include "sync/iteration_window.hpp"

namespace fluentps {

class Clocks final : public SyncState {
 public:
  /// `coin_seed` is the seed of the run, mixed with the server's index where each server has its own coin.
  /// `first`: V and progress at the start.
  Clocks(std::uint32_t workers, std::uint64_t coin_seed, Iteration first = 0);

  std::uint32_t workers() const override { return static_cast<std::uint32_t>(progress_.size()); }
  std::uint32_t active_workers() const override { return active_workers_; }
  bool active(WorkerIndex worker) const override { return active_[worker.value] != 0; }
  Iteration v() const override { return window_.begin(); }
  Iteration progress(WorkerIndex worker) const override { return progress_[worker.value]; }
  Iteration fastest() const override { return fastest_; }
  std::uint32_t count(Iteration i) const override { return window_.contains(i) ? window_[i].pushes : 0; }
  std::uint32_t active_count(Iteration i) const override {
    return window_.contains(i) ? window_[i].pushes - window_[i].departed : 0;
  }
  std::int64_t now_ns() const override { return now_ns_; }
  std::optional<std::int64_t> first_push_ns() const override;
  double coin(WorkerIndex worker, Iteration iteration) const override;

  void set_now(std::int64_t now_ns) { now_ns_ = now_ns; }
  /// The worker's next push is complete. Returns false when it was late.
  bool push(WorkerIndex worker);
  void leave(WorkerIndex worker);
  /// Whether anybody has pushed iteration V: only then it can be complete.
  bool begun() const { return window_.end() > window_.begin(); }
  /// V + 1. Precondition: begun().
  void advance() { window_.pop_front(); }
  /// Slots allocated, for the tests of bounded memory.
  std::size_t capacity() const { return window_.capacity(); }

 private:
  struct Slot {
    std::uint32_t pushes = 0;
    std::uint32_t departed = 0;  ///< of them, by workers that have left since
    std::int64_t first_ns = 0;
  };

  IterationWindow<Slot> window_;  ///< begins at V, ends at the largest progress ever
  std::vector<Iteration> progress_;
  std::vector<std::uint8_t> active_;
  std::uint32_t active_workers_;
  Iteration fastest_ = 0;
  std::int64_t now_ns_ = 0;
  std::uint64_t coin_seed_;
};

}  // namespace fluentps
