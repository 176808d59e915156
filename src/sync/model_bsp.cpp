/// Bulk synchronous parallel (Valiant, CACM 33(8), 1990): nobody starts iteration i+1 before all have pushed i.
#include "sync/arguments.hpp"
#include "sync/models.hpp"

namespace fluentps {
namespace {

class Bsp final : public SyncModel {
 public:
  std::string spec() const override { return "bsp"; }
  bool may_pull(const SyncState& state, WorkerIndex, Iteration i) const override { return i < state.v(); }
  std::optional<Iteration> release_at(const SyncState&, WorkerIndex, Iteration i) const override { return i + 1; }
  Aggregation aggregation() const override { return {.kind = Aggregation::Kind::kOrderedSum}; }
};

}  // namespace

SyncModelEntry bsp_entry() {
  return {.name = "bsp",
          .signature = "bsp",
          .answers = "i < V",
          .advances = "Count[V] == N",
          .source = "Valiant, CACM 1990",
          .make = [](const SyncArguments& arguments, std::uint32_t) -> std::unique_ptr<SyncModel> {
            ArgumentReader("bsp", arguments).finish();
            return std::make_unique<Bsp>();
          }};
}

}  // namespace fluentps
