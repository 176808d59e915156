#include "net/preflight.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fluentps/error.hpp"
#include "net/agree.hpp"
#include "net/mpi_error.hpp"

namespace fluentps {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
/// Open MPI's own files there: about 4 MiB a rank for the shared-memory queues.
constexpr std::int64_t kQueueBytesPerRank = std::int64_t{4} << 20;
constexpr const char* kSharedMemory = "/dev/shm";

}  // namespace

void check_window_memory(const Roles& roles, std::int64_t window_bytes) {
#ifdef FLUENTPS_SIMULATED
  (void)roles;
  (void)window_bytes;
#else
  std::int64_t node_bytes = 0;
  FLUENTPS_MPI(MPI_Allreduce(&window_bytes, &node_bytes, 1, MPI_INT64_T, MPI_SUM, roles.node.get()));
  agree(roles.job.get(), [&] {
    const auto host = roles.hosts[static_cast<std::size_t>(roles.job.rank())];
    const auto memory = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    if (node_bytes > memory)
      throw UsageError(fmt::format("the servers on {} need {:.0f} MiB for shards and inbox rings, but it has {:.0f} MiB of "
                                   "memory; lower --ring or --chunk-kib, or use more server nodes",
                                   host, static_cast<double>(node_bytes) / kMiB, static_cast<double>(memory) / kMiB));
    struct statvfs fs {};
    if (roles.node.size() < 2 || ::statvfs(kSharedMemory, &fs) != 0) return;
    const auto free_bytes = static_cast<std::int64_t>(fs.f_bavail) * static_cast<std::int64_t>(fs.f_frsize);
    const auto needed = node_bytes + kQueueBytesPerRank * roles.node.size();
    if (needed > free_bytes)
      throw UsageError(fmt::format("{} on {} has {:.0f} MiB free, but windows and queues of its {} ranks need {:.0f} MiB; "
                                   "enlarge it (mount -o remount,size=...), lower --ring or --chunk-kib, or use "
                                   "--transport p2p",
                                   kSharedMemory, host, static_cast<double>(free_bytes) / kMiB, roles.node.size(),
                                   static_cast<double>(needed) / kMiB));
  });
#endif
}

bool more_ranks_than_cores(const Roles& roles) { return roles.node.size() > sysconf(_SC_NPROCESSORS_ONLN); }

}  // namespace fluentps
