/// Probabilistic synchronous parallel (Wang, Catterall, Mortier, arXiv:1709.07772, 2017): SSP towards a random sample
/// of the workers. With beta = N it is SSP.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "sync/arguments.hpp"
#include "sync/coin.hpp"
#include "sync/models.hpp"

namespace fluentps {
namespace {

constexpr std::string_view kSignature = "psp:beta=B,s=S";

class Psp final : public SyncModel {
 public:
  Psp(std::uint32_t beta, std::int64_t staleness) : beta_(beta), staleness_(staleness) {}
  std::string spec() const override { return fmt::format("psp:beta={},s={}", beta_, staleness_); }

  /// All sampled workers satisfy i < progress + s. One sample per (worker, iteration), so asking again is asking the
  /// same workers, and an answer once possible stays so. Workers that have left are not waited for.
  bool may_pull(const SyncState& state, WorkerIndex worker, Iteration i) const override {
    if (i < state.v() + staleness_) return true;
    draw(state, worker, i);
    return std::all_of(sample_.begin(), sample_.end(), [&](std::uint32_t other) {
      return !state.active(WorkerIndex{other}) || i < state.progress(WorkerIndex{other}) + staleness_;
    });
  }

 private:
  /// beta distinct workers of N (Floyd's algorithm, CACM 30(9), 1987), driven by the coin of (worker, i).
  void draw(const SyncState& state, WorkerIndex worker, Iteration i) const {
    auto bits = mix64(std::bit_cast<std::uint64_t>(state.coin(worker, i)));
    sample_.clear();
    for (std::uint32_t last = state.workers() - beta_; last < state.workers(); ++last) {
      bits = mix64(bits);
      const auto pick = static_cast<std::uint32_t>(to_unit(bits) * (last + 1));
      const bool taken = std::find(sample_.begin(), sample_.end(), pick) != sample_.end();
      sample_.push_back(taken ? last : pick);
    }
  }

  std::uint32_t beta_;
  std::int64_t staleness_;
  mutable std::vector<std::uint32_t> sample_;  ///< scratch
};

}  // namespace

SyncModelEntry psp_entry() {
  return {.name = "psp",
          .signature = std::string(kSignature),
          .answers = "i < p+s for the smallest progress p of B sampled workers",
          .advances = "Count[V] == N",
          .source = "Wang, Catterall, Mortier, arXiv:1709.07772, 2017",
          .make = [](const SyncArguments& arguments, std::uint32_t workers) -> std::unique_ptr<SyncModel> {
            ArgumentReader reader(kSignature, arguments);
            const auto beta = static_cast<std::uint32_t>(reader.integer("beta", 1, workers));
            const auto staleness = reader.integer("s", 0, kMaxStaleness);
            reader.finish();
            return std::make_unique<Psp>(beta, staleness);
          }};
}

}  // namespace fluentps
