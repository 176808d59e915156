#include "net/roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "fluentps/error.hpp"
#include "net/agree.hpp"
#include "net/mpi_error.hpp"

namespace fluentps {
namespace {

constexpr int kNoRole = 2;

/// Ranks in the order in which they become servers: one of each node in turn, the last rank of a node first, so that
/// rank 0, which prints, stays a worker where it can.
std::vector<int> spread_order(const std::vector<int>& node_of_rank) {
  std::map<int, std::vector<int>> ranks_of_node;
  for (int rank = 0; rank < static_cast<int>(node_of_rank.size()); ++rank)
    ranks_of_node[node_of_rank[static_cast<std::size_t>(rank)]].push_back(rank);
  std::vector<int> order;
  while (order.size() < node_of_rank.size())
    for (auto& [node, ranks] : ranks_of_node)
      if (!ranks.empty()) {
        order.push_back(ranks.back());
        ranks.pop_back();
      }
  return order;
}

std::vector<Role> forced_roles(const std::vector<std::optional<Role>>& forced) {
  std::vector<Role> roles;
  for (std::size_t rank = 0; rank < forced.size(); ++rank) {
    if (!forced[rank])
      throw UsageError(fmt::format(
          "FLUENTPS_ROLE is set on some ranks but not on rank {}; set it to server or worker on every rank, "
          "or on none and use --servers",
          rank));
    roles.push_back(*forced[rank]);
  }
  const auto servers = std::count(roles.begin(), roles.end(), Role::kServer);
  if (servers == 0 || servers == static_cast<std::ptrdiff_t>(roles.size()))
    throw UsageError(
        fmt::format("FLUENTPS_ROLE makes {} of {} ranks servers; at least one server and one worker are needed",
                    servers, roles.size()));
  return roles;
}

std::vector<std::string> gather_hosts(const Comm& job) {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  FLUENTPS_MPI(MPI_Get_processor_name(name.data(), &length));
  std::vector<char> all(name.size() * static_cast<std::size_t>(job.size()));
  FLUENTPS_MPI(MPI_Allgather(name.data(), static_cast<int>(name.size()), MPI_CHAR, all.data(),
                             static_cast<int>(name.size()), MPI_CHAR, job.get()));
  std::vector<std::string> hosts;
  for (std::size_t at = 0; at < all.size(); at += name.size()) hosts.emplace_back(all.data() + at);
  return hosts;
}

/// Nodes numbered by their first rank, so that the numbering is the same everywhere.
std::vector<int> gather_nodes(const Comm& job, const Comm& node) {
  int leader = job.rank();
  FLUENTPS_MPI(MPI_Bcast(&leader, 1, MPI_INT, 0, node.get()));
  std::vector<int> leaders(static_cast<std::size_t>(job.size()));
  FLUENTPS_MPI(MPI_Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, job.get()));
  return leaders;
}

std::vector<std::optional<Role>> gather_forced(const Comm& job) {
  std::optional<Role> own;
  agree(job.get(), [&] { own = role_from_environment(); });
  const int code = own ? static_cast<int>(*own) : kNoRole;
  std::vector<int> codes(static_cast<std::size_t>(job.size()));
  FLUENTPS_MPI(MPI_Allgather(&code, 1, MPI_INT, codes.data(), 1, MPI_INT, job.get()));
  std::vector<std::optional<Role>> forced;
  for (const int each : codes)
    forced.push_back(each == kNoRole ? std::nullopt : std::optional(static_cast<Role>(each)));
  return forced;
}

}  // namespace

std::string_view to_string(Role role) { return role == Role::kServer ? "server" : "worker"; }

Placement parse_placement(std::string_view text) {
  if (text == "spread") return Placement::kSpread;
  if (text == "first") return Placement::kFirst;
  if (text == "last") return Placement::kLast;
  throw UsageError(fmt::format("unknown placement '{}'; use spread, first or last", text));
}

std::string_view to_string(Placement placement) {
  switch (placement) {
    case Placement::kSpread:
      return "spread";
    case Placement::kFirst:
      return "first";
    case Placement::kLast:
      return "last";
  }
  return "?";
}

std::optional<Role> role_from_environment() {
  const char* text = std::getenv("FLUENTPS_ROLE");
  if (text == nullptr || *text == '\0') return std::nullopt;
  if (std::string_view(text) == "server") return Role::kServer;
  if (std::string_view(text) == "worker") return Role::kWorker;
  throw UsageError(fmt::format("FLUENTPS_ROLE is '{}'; it must be server or worker", text));
}

std::vector<Role> assign_roles(const std::vector<int>& node_of_rank, const std::vector<std::optional<Role>>& forced,
                               std::uint32_t servers, Placement placement) {
  const auto ranks = node_of_rank.size();
  if (ranks < 2)
    throw UsageError(
        fmt::format("{} MPI rank was started, but one server and one worker need at least 2; "
                    "start with mpirun -np 2 or more (under srun: --mpi=pmix)",
                    ranks));
  if (std::any_of(forced.begin(), forced.end(), [](const auto& role) { return role.has_value(); }))
    return forced_roles(forced);
  if (servers < 1 || servers >= ranks)
    throw UsageError(
        fmt::format("{} servers asked for on {} MPI ranks; --servers must be 1 to {} so that a worker is left", servers,
                    ranks, ranks - 1));
  std::vector<Role> roles(ranks, Role::kWorker);
  if (placement == Placement::kFirst) {
    std::fill_n(roles.begin(), servers, Role::kServer);
  } else if (placement == Placement::kLast) {
    std::fill_n(roles.rbegin(), servers, Role::kServer);
  } else {
    const auto order = spread_order(node_of_rank);
    for (std::uint32_t k = 0; k < servers; ++k) roles[static_cast<std::size_t>(order[k])] = Role::kServer;
  }
  return roles;
}

std::string Roles::name() const {
  const int rank = job.rank();
  return fmt::format("{} {} (rank {} on {})", to_string(role), index, rank, hosts[static_cast<std::size_t>(rank)]);
}

/// srun without a PMI plugin starts every task as an MPI job of its own.
static void refuse_singletons(MPI_Comm parent) {
  int size = 0;
  FLUENTPS_MPI(MPI_Comm_size(parent, &size));
  const char* tasks = std::getenv("SLURM_NTASKS");
  if (size == 1 && tasks != nullptr && std::atoi(tasks) > 1)
    throw UsageError(
        fmt::format("Slurm started {} tasks (SLURM_NTASKS) but MPI sees 1 rank; start with srun --mpi=pmix, or "
                    "with mpirun",
                    tasks));
}

void split_roles(std::uint32_t servers, Placement placement, Roles& roles) {
  refuse_singletons(roles.job.get());
  roles.node = Comm::split_node(roles.job.get());
  roles.hosts = gather_hosts(roles.job);
  roles.node_of_rank = gather_nodes(roles.job, roles.node);
  const auto all = assign_roles(roles.node_of_rank, gather_forced(roles.job), servers, placement);
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank)
    (all[static_cast<std::size_t>(rank)] == Role::kServer ? roles.rank_of_server : roles.rank_of_worker)
        .push_back(rank);
  const int rank = roles.job.rank();
  roles.role = all[static_cast<std::size_t>(rank)];
  const bool is_server = roles.role == Role::kServer;
  Comm own = Comm::split(roles.job.get(), static_cast<int>(roles.role), rank);
  roles.index = static_cast<std::uint32_t>(own.rank());
  (is_server ? roles.servers : roles.workers) = std::move(own);
}

}  // namespace fluentps
