/// n-softsync (Zhang, Gupta, Lian, Liu, IJCAI 2016): one update per floor(N/n) gradients, averaged; nobody waits.
#include <fmt/format.h>

#include "sync/arguments.hpp"
#include "sync/models.hpp"

namespace fluentps {
namespace {

constexpr std::string_view kSignature = "softsync:n=K";

class Softsync final : public SyncModel {
 public:
  Softsync(std::uint32_t splits, std::uint32_t group) : splits_(splits), group_(group) {}
  std::string spec() const override { return fmt::format("softsync:n={}", splits_); }
  bool may_pull(const SyncState&, WorkerIndex, Iteration) const override { return true; }
  Aggregation aggregation() const override { return {.kind = Aggregation::Kind::kGroups, .count = group_}; }

 private:
  std::uint32_t splits_;
  std::uint32_t group_;
};

}  // namespace

SyncModelEntry softsync_entry() {
  return {.name = "softsync",
          .signature = std::string(kSignature),
          .answers = "always",
          .advances = "Count[V] == N (bookkeeping); one averaged update per floor(N/K) pushes",
          .source = "Zhang et al., IJCAI 2016",
          .make = [](const SyncArguments& arguments, std::uint32_t workers) -> std::unique_ptr<SyncModel> {
            ArgumentReader reader(kSignature, arguments);
            const auto splits = static_cast<std::uint32_t>(reader.integer("n", 1, workers));
            reader.finish();
            return std::make_unique<Softsync>(splits, workers / splits);
          }};
}

}  // namespace fluentps
