/// Replays one server's tables against the contract.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/contract.hpp"
#include "trace/replay_state.hpp"

namespace fluentps::trace {

/// What a server has of one worker, by iteration.
struct WorkerHistory {
  static constexpr std::uint64_t kNone = UINT64_MAX;
  std::vector<std::uint64_t> pushed_ns;  ///< kNone: no push
  std::vector<std::uint64_t> pull_row;   ///< row in /pulls, kNone: no pull
};

class ServerCheck {
 public:
  /// References outlive the check.
  ServerCheck(const RankData& rank, const Contract& contract, Verification& verification);
  /// Adds violations and figures.
  void run();

  const RankData& rank() const { return rank_; }
  const WorkerHistory& history(std::uint32_t worker) const { return histories_[worker]; }

 private:
  void read_pushes();
  bool push_row_fits(std::uint64_t row, std::uint64_t before_ns);
  void read_pulls();
  void check_advances();
  void check_advance(std::uint64_t row);
  void note_completions(const PushRow& push, std::uint64_t time_ns);
  void check_promptness(std::uint64_t row);
  void check_late();
  void check_pulls();
  void check_clock(std::uint64_t row);
  void check_condition(std::uint64_t row, ReplayState& state);
  void check_staleness();
  void check_end();
  void add_figures();

  std::uint64_t advances_before(std::uint64_t time_ns) const;
  std::uint64_t advances_until(std::uint64_t time_ns) const;
  void violate(const char* table, std::uint64_t row, std::string text) {
    verification_.add(rank_, table, row, std::move(text));
  }
  /// Feeds the pushes up to and including time_ns to the state.
  template <typename Then>
  void replay_until(std::uint64_t time_ns, ReplayState& state, std::size_t& next, const Then& then) const;

  const RankData& rank_;
  const Contract& contract_;
  Verification& verification_;
  std::vector<Stretch> stretches_;
  std::vector<std::uint32_t> needed_;  ///< per stretch: pushes that move V with all workers there; 0: unknown
  std::vector<WorkerHistory> histories_;
  std::vector<std::size_t> good_;       ///< rows of /pushes that can be replayed
  std::vector<std::uint64_t> push_ns_;  ///< of good_[k]; a dropped push has the time of the row before
  std::vector<std::uint64_t> last_event_ns_;
  std::vector<std::uint64_t> advance_ns_;
  std::vector<std::uint64_t> complete_ns_;  ///< per iteration: when the pushes needed were there
};

template <typename Then>
void ServerCheck::replay_until(std::uint64_t time_ns, ReplayState& state, std::size_t& next, const Then& then) const {
  for (; next < good_.size() && push_ns_[next] <= time_ns; ++next) {
    const auto& push = rank_.pushes[good_[next]];
    state.push(push.worker, push.iteration, push.late != 0, push.arrive_ns);
    then(push, state);
  }
}

}  // namespace fluentps::trace
