/// Which rank is a server and which a worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fluentps/types.hpp"
#include "net/comm.hpp"

namespace fluentps {

enum class Role : std::uint8_t { kServer, kWorker };
std::string_view to_string(Role role);

/// Where the servers sit. spread: over the nodes, one after another; first, last: the first or last ranks.
enum class Placement : std::uint8_t { kSpread, kFirst, kLast };
Placement parse_placement(std::string_view text);  ///< throws UsageError
std::string_view to_string(Placement placement);

/// The value of FLUENTPS_ROLE, if set. Throws UsageError when it is neither `server` nor `worker`.
std::optional<Role> role_from_environment();

/// Role of every rank of a job. `node_of_rank` numbers the nodes; `forced` holds what FLUENTPS_ROLE says on each rank:
/// where any rank has one, all need one, and it wins over `servers` and `placement`. Throws UsageError on impossible
/// counts, with the numbers. Plain arithmetic: the same on every rank.
std::vector<Role> assign_roles(const std::vector<int>& node_of_rank, const std::vector<std::optional<Role>>& forced,
                               std::uint32_t servers, Placement placement);

/// A job split into its two communicators.
struct Roles {
  Comm job;      ///< all ranks of this run
  Comm servers;  ///< empty on workers
  Comm workers;  ///< empty on servers
  Comm node;     ///< ranks that share this node's memory
  Role role = Role::kWorker;
  std::uint32_t index = 0;          ///< rank in the own communicator
  std::vector<int> rank_of_server;  ///< job ranks
  std::vector<int> rank_of_worker;
  std::vector<std::string> hosts;  ///< of each job rank
  std::vector<int> node_of_rank;

  std::uint32_t server_count() const { return static_cast<std::uint32_t>(rank_of_server.size()); }
  std::uint32_t worker_count() const { return static_cast<std::uint32_t>(rank_of_worker.size()); }
  /// "worker 3 (rank 5 on node7)"
  std::string name() const;
};

/// Collective over `roles.job`, the one part that is given: fills in all others. Throws UsageError on all ranks alike;
/// what was made until then is in `roles`.
void split_roles(std::uint32_t servers, Placement placement, Roles& roles);

}  // namespace fluentps
