/// A server's clocks as far as a trace tells them at one moment, for asking a model again.
///
/// Where several events carry one time their order is not known; the state then holds all of them. Conditions grow with
/// progress and counts, so what this state refuses was wrong in every order: no false alarms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sync/clocks.hpp"

namespace fluentps::trace {

class ReplayState final : public SyncState {
 public:
  static constexpr std::uint64_t kNever = UINT64_MAX;

  /// `first_iteration`: of a resumed run, whose iterations are counted from it here, but not for the coin.
  ReplayState(std::uint32_t workers, std::uint64_t coin_seed, Iteration first_iteration)
      : last_event_ns(workers, 0),
        progress_(workers, 0),
        coin_(workers, coin_seed),
        first_iteration_(first_iteration) {}

  /// In-time pushes count; every push is progress. `i` must be at most the number of pushes so far plus gaps.
  void push(std::uint32_t worker, Iteration i, bool late, std::uint64_t arrive_ns) {
    progress_[worker] = std::max(progress_[worker], i + 1);
    fastest_ = std::max(fastest_, i + 1);
    if (late) return;
    const auto slot = static_cast<std::size_t>(i);
    if (slot >= counts_.size()) {
      counts_.resize(slot + 1, 0);
      first_ns_.resize(slot + 1, kNever);
    }
    ++counts_[slot];
    first_ns_[slot] = std::min(first_ns_[slot], arrive_ns);
  }

  std::uint32_t workers() const override { return static_cast<std::uint32_t>(progress_.size()); }
  std::uint32_t active_workers() const override {
    return static_cast<std::uint32_t>(
        std::count_if(last_event_ns.begin(), last_event_ns.end(), [this](auto last) { return last >= time_ns; }));
  }
  bool active(WorkerIndex worker) const override { return last_event_ns[worker.value] >= time_ns; }
  Iteration v() const override { return clock; }
  Iteration progress(WorkerIndex worker) const override { return progress_[worker.value]; }
  Iteration fastest() const override { return fastest_; }
  std::uint32_t count(Iteration i) const override {
    return i >= 0 && static_cast<std::size_t>(i) < counts_.size() ? counts_[static_cast<std::size_t>(i)] : 0;
  }
  std::uint32_t active_count(Iteration i) const override {
    std::uint32_t found = 0;
    for (std::uint32_t w = 0; w < workers(); ++w)
      if (active(WorkerIndex{w}) && progress_[w] > i) ++found;
    return found;
  }
  std::int64_t now_ns() const override { return static_cast<std::int64_t>(time_ns); }
  std::optional<std::int64_t> first_push_ns() const override {
    if (count(clock) == 0) return std::nullopt;
    return static_cast<std::int64_t>(first_ns_[static_cast<std::size_t>(clock)]);
  }
  double coin(WorkerIndex worker, Iteration iteration) const override {
    return coin_.coin(worker, iteration + first_iteration_);
  }

  Iteration clock = 0;                       ///< V
  std::uint64_t time_ns = 0;                 ///< of the event being judged
  std::vector<std::uint64_t> last_event_ns;  ///< per worker: its last row at this server; it had not left before

 private:
  std::vector<Iteration> progress_;
  Iteration fastest_ = 0;
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint64_t> first_ns_;
  Clocks coin_;
  Iteration first_iteration_;
};

}  // namespace fluentps::trace
