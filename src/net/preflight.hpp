/// What a node must have before windows are allocated: Open MPI dies with SIGBUS where shared memory is short.
#pragma once

#include <cstdint>

#include "net/roles.hpp"

namespace fluentps {

/// Collective over roles.job. `window_bytes`: what this rank will expose. Throws UsageError on all ranks alike when the
/// windows of a node do not fit its /dev/shm or its memory, with what is needed and what is there.
void check_window_memory(const Roles& roles, std::int64_t window_bytes);

/// Whether this node runs more ranks than it has cores.
bool more_ranks_than_cores(const Roles& roles);

}  // namespace fluentps
