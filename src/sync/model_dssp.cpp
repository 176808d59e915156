/// Dynamic SSP (Zhao, An, Liu, Chen, ICDCS 2019; the idea of a bound that moves: Zhang, Tu et al., Sensors 17(9),
/// 2017).
///
/// A worker that reaches the lower bound may run r more iterations, r chosen so that it then waits least for the next
/// push of the slowest worker. Both are predicted from the last push and the time from an answer to the push after it,
/// so time spent waiting does not count. It never runs beyond the upper bound. After those r iterations it asks again;
/// r = 0 means: wait for the lower bound.
#include <fmt/format.h>

#include <algorithm>

#include "fluentps/error.hpp"
#include "sync/arguments.hpp"
#include "sync/models.hpp"

namespace fluentps {
namespace {

constexpr std::string_view kSignature = "dssp:low=L,high=H";
/// The search over r is linear.
constexpr std::int64_t kMaxRange = 1000;

/// What is known of one worker.
struct Times {
  std::int64_t begin_ns = 0;     ///< of the iteration under way
  std::int64_t last_ns = 0;      ///< of the last push
  std::int64_t interval_ns = 0;  ///< the last iteration took; 0: not known
  Iteration free_until = 0;      ///< pulls below it are answered
  bool begun = false;            ///< begin_ns is known
};
constexpr Times kUnknown{};

class Dssp final : public SyncModel {
 public:
  Dssp(std::int64_t low, std::int64_t high, std::uint32_t workers) : low_(low), high_(high), times_(workers) {}
  std::string spec() const override { return fmt::format("dssp:low={},high={}", low_, high_); }

  bool may_pull(const SyncState& state, WorkerIndex worker, Iteration i) const override {
    return i < state.v() + low_ || i < times_[worker.value].free_until;
  }
  std::optional<Iteration> release_at(const SyncState&, WorkerIndex, Iteration i) const override {
    return i - low_ + 1;
  }

  void on_push(const SyncState& state, WorkerIndex worker, Iteration i) override {
    auto& times = times_[worker.value];
    if (times.begun) times.interval_ns = state.now_ns() - times.begin_ns;
    times.last_ns = times.begin_ns = state.now_ns();
    times.begun = true;
    if (i < state.v() + low_ || i < times.free_until) return;
    times.free_until = i + choose(times, slowest(state), state.v() + high_ - i);
  }
  void on_answer(const SyncState& state, WorkerIndex worker, Iteration) override {
    times_[worker.value].begin_ns = state.now_ns();
    times_[worker.value].begun = true;
  }

 private:
  /// The r in [0, most] after which the time to the slow worker's next push is shortest; the smallest of equals.
  static Iteration choose(const Times& fast, const Times& slow, Iteration most) {
    if (fast.interval_ns <= 0 || slow.interval_ns <= 0) return 0;
    Iteration best = 0;
    std::int64_t least_ns = INT64_MAX;
    for (Iteration r = 0; r <= most; ++r) {
      const auto since_ns = fast.last_ns + r * fast.interval_ns - slow.last_ns;
      const auto pushes = std::max<std::int64_t>(1, (since_ns + slow.interval_ns - 1) / slow.interval_ns);
      const auto wait_ns = pushes * slow.interval_ns - since_ns;
      if (wait_ns >= least_ns) continue;
      least_ns = wait_ns;
      best = r;
    }
    return best;
  }

  /// An active worker of the smallest progress. Within one V those only become fewer, so the search goes on where it
  /// stood and costs O(1) per push on average.
  const Times& slowest(const SyncState& state) {
    const auto workers = state.workers();
    if (state.v() != scanned_v_) {
      scanned_v_ = state.v();
      slowest_ = 0;
    }
    const auto behind = [&](std::uint32_t w) {
      return state.active(WorkerIndex{w}) && state.progress(WorkerIndex{w}) <= state.v();
    };
    while (slowest_ < workers && !behind(slowest_)) ++slowest_;
    return slowest_ < workers ? times_[slowest_] : kUnknown;
  }

  std::int64_t low_;
  std::int64_t high_;
  std::vector<Times> times_;
  Iteration scanned_v_ = -1;
  std::uint32_t slowest_ = 0;
};

}  // namespace

SyncModelEntry dssp_entry() {
  return {.name = "dssp",
          .signature = std::string(kSignature),
          .answers = "i < V+s_t, s_t in [L,H] chosen from the latest push times to wait least",
          .advances = "Count[V] == N",
          .source = "Zhao et al., ICDCS 2019; Zhang, Tu et al., Sensors 2017",
          .make = [](const SyncArguments& arguments, std::uint32_t workers) -> std::unique_ptr<SyncModel> {
            ArgumentReader reader(kSignature, arguments);
            const auto low = reader.integer("low", 0, kMaxStaleness);
            const auto high = reader.integer("high", low, low + kMaxRange);
            reader.finish();
            return std::make_unique<Dssp>(low, high, workers);
          }};
}

}  // namespace fluentps
