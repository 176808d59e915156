#include "net/preflight.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <type_traits>
#include <vector>

#include "fluentps/error.hpp"
#include "net/agree.hpp"
#include "net/mpi_error.hpp"

namespace fluentps {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
/// Open MPI's own files there: about 4 MiB a rank for the shared-memory queues.
constexpr std::int64_t kQueueBytesPerRank = std::int64_t{4} << 20;
constexpr const char* kSharedMemory = "/dev/shm";
constexpr const char* kRdmaDevices = "/sys/class/infiniband";

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / kMiB; }

std::int64_t free_bytes_in(const char* path) {
  struct statvfs fs {};
  if (::statvfs(path, &fs) != 0) return -1;
  return static_cast<std::int64_t>(fs.f_bavail) * static_cast<std::int64_t>(fs.f_frsize);
}

std::int64_t memlock_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
  return static_cast<std::int64_t>(limit.rlim_cur);
}

bool has_rdma_devices() {
  std::error_code error;
  return std::filesystem::exists(kRdmaDevices, error) && !std::filesystem::is_empty(kRdmaDevices, error);
}

std::string row(const NodeFacts& facts, const std::string& host) {
  const auto limit = [](std::int64_t bytes) {
    return bytes < 0 ? std::string("-") : fmt::format("{:.0f}", mib(bytes));
  };
  return fmt::format("  {:<20} {:>6} {:>8} {:>6} {:>10.0f} {:>10.0f} {:>10} {:>10}{}\n", host, facts.ranks,
                     facts.servers, facts.cores, mib(facts.window_bytes), mib(facts.memory_bytes),
                     limit(facts.shared_free_bytes), limit(facts.memlock_bytes),
                     facts.ranks > facts.cores ? "  more ranks than cores" : "");
}

}  // namespace

NodeFacts look_at_node(const Roles& roles, std::int64_t window_bytes) {
  NodeFacts facts;
  facts.ranks = roles.node.size();
  facts.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  facts.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  facts.shared_free_bytes = free_bytes_in(kSharedMemory);
  facts.memlock_bytes = memlock_limit();
  facts.rdma = has_rdma_devices();
  const int server = roles.role == Role::kServer ? 1 : 0;
  FLUENTPS_MPI(MPI_Allreduce(&server, &facts.servers, 1, MPI_INT, MPI_SUM, roles.node.get()));
  FLUENTPS_MPI(MPI_Allreduce(&window_bytes, &facts.window_bytes, 1, MPI_INT64_T, MPI_SUM, roles.node.get()));
  return facts;
}

void require_room(const NodeFacts& facts, const std::string& host) {
  if (facts.window_bytes > facts.memory_bytes)
    throw UsageError(
        fmt::format("the servers on {} need {:.0f} MiB for shards and inbox rings, but it has {:.0f} MiB of "
                    "memory; lower --ring or --chunk-kib, or use more server nodes",
                    host, mib(facts.window_bytes), mib(facts.memory_bytes)));
  const auto shared = facts.window_bytes + kQueueBytesPerRank * facts.ranks;
  if (facts.ranks > 1 && facts.shared_free_bytes >= 0 && shared > facts.shared_free_bytes)
    throw UsageError(
        fmt::format("{} on {} has {:.0f} MiB free, but windows and queues of its {} ranks need {:.0f} MiB; "
                    "enlarge it (mount -o remount,size=...), lower --ring or --chunk-kib, or use "
                    "--transport p2p",
                    kSharedMemory, host, mib(facts.shared_free_bytes), facts.ranks, mib(shared)));
  if (facts.rdma && facts.memlock_bytes >= 0 && facts.window_bytes > facts.memlock_bytes)
    throw UsageError(
        fmt::format("{} lets a process lock {:.0f} MiB (ulimit -l), but its servers need {:.0f} MiB locked for "
                    "RDMA; set ulimit -l unlimited (limits.conf, or Slurm's PropagateResourceLimitsExcept)",
                    host, mib(facts.memlock_bytes), mib(facts.window_bytes)));
}

void check_window_memory(const Roles& roles, std::int64_t window_bytes) {
#ifdef FLUENTPS_SIMULATED
  (void)roles;
  (void)window_bytes;
#else
  const auto facts = look_at_node(roles, window_bytes);
  agree(roles.job.get(), [&] { require_room(facts, roles.hosts[static_cast<std::size_t>(roles.job.rank())]); });
#endif
}

std::string preflight_table(const Roles& roles, const NodeFacts& own) {
  static_assert(std::is_trivially_copyable_v<NodeFacts>, "it travels as bytes");
  const bool root = roles.job.rank() == 0;
  std::vector<NodeFacts> all(root ? static_cast<std::size_t>(roles.job.size()) : 0);
  FLUENTPS_MPI(MPI_Gather(&own, sizeof(own), MPI_BYTE, all.data(), sizeof(own), MPI_BYTE, 0, roles.job.get()));
  if (!root) return "";
  auto text = fmt::format("  {:<20} {:>6} {:>8} {:>6} {:>10} {:>10} {:>10} {:>10}\n", "node (MiB)", "ranks", "servers",
                          "cores", "windows", "memory", "/dev/shm", "memlock");
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (roles.node_of_rank[rank] == static_cast<int>(rank)) text += row(all[rank], roles.hosts[rank]);
  return text;
}

bool more_ranks_than_cores(const Roles& roles) { return roles.node.size() > sysconf(_SC_NPROCESSORS_ONLN); }

}  // namespace fluentps
