/// Backup workers (Chen, Pan, Monga, Bengio, Jozefowicz, ICLR workshop 2016): the first n pushes of an iteration make
/// its update; those that come later are dropped.
#include <fmt/format.h>

#include <algorithm>

#include "fluentps/error.hpp"
#include "sync/arguments.hpp"
#include "sync/models.hpp"

namespace fluentps {
namespace {

constexpr std::string_view kSignature = "drop:n=M";

class Drop final : public SyncModel {
 public:
  explicit Drop(std::uint32_t arrivals) : arrivals_(arrivals) {}
  std::string spec() const override { return fmt::format("drop:n={}", arrivals_); }
  bool may_pull(const SyncState& state, WorkerIndex, Iteration i) const override { return i < state.v(); }
  std::optional<Iteration> release_at(const SyncState&, WorkerIndex, Iteration i) const override { return i + 1; }
  /// A push of a worker that has left since is in the sum and counts.
  bool may_advance(const SyncState& state) const override {
    return state.count(state.v()) >= std::min(arrivals_, state.active_workers());
  }
  Aggregation aggregation() const override { return {.kind = Aggregation::Kind::kFirstArrivals, .count = arrivals_}; }

 private:
  std::uint32_t arrivals_;
};

}  // namespace

SyncModelEntry drop_entry() {
  return {.name = "drop",
          .signature = std::string(kSignature),
          .answers = "i < V",
          .advances = "Count[V] == M < N; later pushes are dropped and counted",
          .source = "Chen et al. (backup workers), ICLR workshop 2016",
          .make = [](const SyncArguments& arguments, std::uint32_t workers) -> std::unique_ptr<SyncModel> {
            ArgumentReader reader(kSignature, arguments);
            if (workers < 2)
              throw UsageError("--sync: drop:n=M needs M below the number of workers, found 1 worker, use bsp");
            const auto arrivals = static_cast<std::uint32_t>(reader.integer("n", 1, workers - 1));
            reader.finish();
            return std::make_unique<Drop>(arrivals);
          }};
}

}  // namespace fluentps
