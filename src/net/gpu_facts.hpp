/// What one rank sees of its node's GPUs. Plain: no MPI, no CUDA.
#pragma once

#include <cstdint>

namespace fluentps {

/// Versions as CUDA counts them, 12040 for 12.4.
struct GpuFacts {
  int devices = 0;           ///< that this rank sees
  int driver_version = 0;    ///< newest that the driver serves; 0: no driver
  int runtime_version = 0;   ///< that this program was built with; 0: without CUDA
  int own = -1;              ///< of these devices, this rank's
  std::uint64_t own_id = 0;  ///< of that device, unique in its node
  int peers = 0;             ///< other devices whose memory this rank's device reaches directly
};

}  // namespace fluentps
