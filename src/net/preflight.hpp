/// What a node must have before windows are allocated: Open MPI dies with SIGBUS where shared memory is short.
#pragma once

#include <cstdint>
#include <string>

#include "net/roles.hpp"

namespace fluentps {

/// What a node needs for this run and what it has. Bytes.
struct NodeFacts {
  int ranks = 0;
  int servers = 0;
  int cores = 0;
  std::int64_t window_bytes = 0;       ///< exposed by its servers
  std::int64_t memory_bytes = 0;       ///< of the node
  std::int64_t shared_free_bytes = 0;  ///< in /dev/shm; -1 where there is none
  std::int64_t memlock_bytes = 0;      ///< RLIMIT_MEMLOCK; -1 unlimited
  bool rdma = false;                   ///< the node has RDMA devices, so windows are locked into memory
};

/// Collective over roles.node. `window_bytes`: what this rank will expose.
NodeFacts look_at_node(const Roles& roles, std::int64_t window_bytes);

/// Throws UsageError when the windows do not fit the node's memory, its /dev/shm or its limit of locked memory: what is
/// needed, what is there, and what to change.
void require_room(const NodeFacts& facts, const std::string& host);

/// Collective over roles.job: require_room on every node; throws on all ranks alike. Nothing in simulation.
void check_window_memory(const Roles& roles, std::int64_t window_bytes);

/// Collective over roles.job: a line for each node, on job rank 0; empty elsewhere.
std::string preflight_table(const Roles& roles, const NodeFacts& own);

/// Whether this node runs more ranks than it has cores.
bool more_ranks_than_cores(const Roles& roles);

}  // namespace fluentps
