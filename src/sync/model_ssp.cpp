/// Stale synchronous parallel (Ho et al., NIPS 2013): a worker runs at most s iterations ahead of the slowest.
#include <fmt/format.h>

#include "sync/arguments.hpp"
#include "sync/models.hpp"

namespace fluentps {
namespace {

constexpr std::string_view kSignature = "ssp:s=S";

class Ssp final : public SyncModel {
 public:
  explicit Ssp(std::int64_t staleness) : staleness_(staleness) {}
  std::string spec() const override { return fmt::format("ssp:s={}", staleness_); }
  bool may_pull(const SyncState& state, WorkerIndex, Iteration i) const override { return i < state.v() + staleness_; }
  std::optional<Iteration> release_at(const SyncState&, WorkerIndex, Iteration i) const override {
    return i - staleness_ + 1;
  }
  /// With s=0 it is bsp, to the bit.
  Aggregation aggregation() const override {
    return {.kind = staleness_ == 0 ? Aggregation::Kind::kOrderedSum : Aggregation::Kind::kImmediate};
  }

 private:
  std::int64_t staleness_;
};

}  // namespace

SyncModelEntry ssp_entry() {
  return {.name = "ssp",
          .signature = std::string(kSignature),
          .answers = "i < V+s",
          .advances = "Count[V] == N",
          .source = "Ho et al., NIPS 2013",
          .make = [](const SyncArguments& arguments, std::uint32_t) -> std::unique_ptr<SyncModel> {
            ArgumentReader reader(kSignature, arguments);
            const auto staleness = reader.integer("s", 0, kMaxStaleness);
            reader.finish();
            return std::make_unique<Ssp>(staleness);
          }};
}

}  // namespace fluentps
