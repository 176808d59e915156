/// What the ranks of a node need of its GPUs, and what is there.
#pragma once

#include <string>

#include "net/gpu_facts.hpp"
#include "net/roles.hpp"

namespace fluentps {

/// Throws UsageError: no driver, a driver older than this program's CUDA, no device, or fewer devices than ranks.
/// `ranks` of this node take `distinct` different devices.
void require_gpus(const GpuFacts& facts, int ranks, int distinct, const std::string& host);

/// Collective over roles.job: require_gpus on every node; throws on all ranks alike. With FLUENTPS_SHARE_GPUS=1 in the
/// environment ranks may share a device, for tests.
void check_gpus(const Roles& roles, const GpuFacts& own);

/// Collective over roles.job: a line for each rank, on job rank 0; empty elsewhere.
std::string gpu_table(const Roles& roles, const GpuFacts& own);

}  // namespace fluentps
