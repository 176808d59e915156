/// The GPU of a rank. A declaration for any compiler: only the build with CUDA=1 has GPUs.
#pragma once

#include <memory>

#include "net/gpu_facts.hpp"
#include "shard/device.hpp"

namespace fluentps {

/// Whether this build has GPUs at all.
bool built_with_cuda();

/// Throws UsageError, one sentence, unless this build has GPUs.
void require_cuda_build();

/// `node_rank` numbers the ranks of a node; its device is that modulo the devices there. Asks the driver only, and does
/// not throw where there is none. A build without CUDA sees no devices.
GpuFacts look_at_gpus(int node_rank);

/// The device of this rank: opens it and makes it the calling thread's current one. Throws DeviceError, and in a build
/// without CUDA UsageError.
std::unique_ptr<Device> open_device(int node_rank);

}  // namespace fluentps
