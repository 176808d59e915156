#include "net/gpu_preflight.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <set>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fluentps/error.hpp"
#include "net/agree.hpp"
#include "net/mpi_error.hpp"

namespace fluentps {
namespace {

static_assert(std::is_trivially_copyable_v<GpuFacts>, "they travel as bytes");

std::string version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

/// Different devices that the ranks of this node take.
int distinct_devices(const Roles& roles, const GpuFacts& own) {
  std::vector<std::uint64_t> ids(static_cast<std::size_t>(roles.node.size()));
  FLUENTPS_MPI(MPI_Allgather(&own.own_id, 1, MPI_UINT64_T, ids.data(), 1, MPI_UINT64_T, roles.node.get()));
  return static_cast<int>(std::set<std::uint64_t>(ids.begin(), ids.end()).size());
}

}  // namespace

void require_gpus(const GpuFacts& facts, int ranks, int distinct, const std::string& host) {
  constexpr const char* kElse = "or use --gpu-transfer off";
  if (facts.driver_version == 0)
    throw UsageError(
        fmt::format("{} has no NVIDIA driver, but --gpu-transfer needs one for CUDA {}; run on GPU nodes, {}", host,
                    version(facts.runtime_version), kElse));
  // Within a major version an older driver serves a newer run-time library.
  if (facts.driver_version / 1000 < facts.runtime_version / 1000)
    throw UsageError(
        fmt::format("the driver of {} serves CUDA {}, but this program was built with CUDA {}; build with "
                    "an older toolkit (CUDA_HOME), {}",
                    host, version(facts.driver_version), version(facts.runtime_version), kElse));
  if (facts.devices == 0)
    throw UsageError(
        fmt::format("a rank on {} sees no GPU, but each needs one; ask for GPUs (sbatch --gpus-per-node), "
                    "look at CUDA_VISIBLE_DEVICES, {}",
                    host, kElse));
  if (distinct < ranks)
    throw UsageError(
        fmt::format("the {} ranks on {} need a GPU each, but they have {} between them; start {} ranks a "
                    "node, {}",
                    ranks, host, distinct, distinct, kElse));
}

void check_gpus(const Roles& roles, const GpuFacts& own) {
  const char* shares = std::getenv("FLUENTPS_SHARE_GPUS");
  const bool shared = shares != nullptr && std::string_view(shares) == "1";
  const int distinct = shared ? roles.node.size() : distinct_devices(roles, own);
  agree(roles.job.get(), [&] {
    require_gpus(own, roles.node.size(), distinct, roles.hosts[static_cast<std::size_t>(roles.job.rank())]);
  });
}

std::string gpu_table(const Roles& roles, const GpuFacts& own) {
  const bool root = roles.job.rank() == 0;
  std::vector<GpuFacts> all(root ? static_cast<std::size_t>(roles.job.size()) : 0);
  FLUENTPS_MPI(MPI_Gather(&own, sizeof(own), MPI_BYTE, all.data(), sizeof(own), MPI_BYTE, 0, roles.job.get()));
  if (!root) return "";
  auto text = fmt::format("  {:<20} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8}\n", "GPUs", "rank", "device", "visible",
                          "peers", "driver", "runtime");
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    text += fmt::format("  {:<20} {:>6} {:>6} {:>8} {:>8} {:>8} {:>8}\n", roles.hosts[rank], rank, all[rank].own,
                        all[rank].devices, all[rank].peers, version(all[rank].driver_version),
                        version(all[rank].runtime_version));
  return text;
}

}  // namespace fluentps
