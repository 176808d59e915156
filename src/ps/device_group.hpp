/// A local group whose buffers may lie on the members' devices: NCCL adds them up where the build has it, else they go
/// through the host's memory. Knows no MPI.
#pragma once

#include <memory>

#include "net/local_group.hpp"
#include "shard/device.hpp"

namespace fluentps {

/// Collective over the group. `host` moves what lies on the host, and all control messages; `device`, this member's
/// own, outlives the group. In each call the buffers of all members lie on the host or all on their devices. Throws
/// NcclError.
std::unique_ptr<LocalGroup> make_device_group(std::unique_ptr<LocalGroup> host, Device& device);

}  // namespace fluentps
