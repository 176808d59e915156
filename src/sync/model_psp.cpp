/// Probabilistic synchronous parallel (Wang, Catterall, Mortier, arXiv:1709.07772, 2017): SSP towards a random sample
/// of the workers. With beta = N it is SSP.
#include <fmt/format.h>

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

  bool may_pull(const SyncState& state, WorkerIndex worker, Iteration i) const override {
    return i < state.v() + staleness_ || !waits_for(state, worker, i);
  }
  /// The first sampled worker for which i < progress + s does not hold. One sample per (worker, i): asking again is
  /// asking the same workers, and an answer once possible stays so. Workers that have left are not waited for.
  std::optional<WorkerIndex> waits_for(const SyncState& state, WorkerIndex worker, Iteration i) const override {
    sampled_.assign(state.workers(), false);
    auto bits = mix64(std::bit_cast<std::uint64_t>(state.coin(worker, i)));
    // Floyd's sampling without replacement (CACM 30(9), 1987).
    for (std::uint32_t last = state.workers() - beta_; last < state.workers(); ++last) {
      bits = mix64(bits);
      auto pick = static_cast<std::uint32_t>(to_unit(bits) * (last + 1));
      if (sampled_[pick]) pick = last;
      sampled_[pick] = true;
      if (state.active({pick}) && i >= state.progress({pick}) + staleness_) return WorkerIndex{pick};
    }
    return std::nullopt;
  }

 private:
  std::uint32_t beta_;
  std::int64_t staleness_;
  mutable std::vector<bool> sampled_;  ///< scratch
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
