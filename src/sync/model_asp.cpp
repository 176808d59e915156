/// Asynchronous parallel (Downpour SGD of DistBelief: Dean et al., NIPS 2012): every pull is answered at once.
#include "sync/arguments.hpp"
#include "sync/models.hpp"

namespace fluentps {
namespace {

class Asp final : public SyncModel {
 public:
  std::string spec() const override { return "asp"; }
  bool may_pull(const SyncState&, WorkerIndex, Iteration) const override { return true; }
};

}  // namespace

SyncModelEntry asp_entry() {
  return {.name = "asp",
          .signature = "asp",
          .answers = "always",
          .advances = "Count[V] == N (bookkeeping)",
          .source = "Dean et al. (DistBelief), NIPS 2012",
          .make = [](const SyncArguments& arguments, std::uint32_t) -> std::unique_ptr<SyncModel> {
            ArgumentReader("asp", arguments).finish();
            return std::make_unique<Asp>();
          }};
}

}  // namespace fluentps
