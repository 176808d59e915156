/// Which way gradients and weights take between GPUs and MPI.
///
///   direct   MPI puts and gets device memory: windows on the servers' devices, no copy on the host
///   staged   windows on the host, copies to and from devices beside everything else (shard/shard_path.hpp)
#pragma once

#include <string>
#include <string_view>

#include "net/roles.hpp"
#include "net/transport.hpp"
#include "shard/device.hpp"

namespace fluentps {

/// kOff: no GPU is used. kAuto: direct where it works, else staged.
enum class GpuTransfer : std::uint8_t { kOff, kAuto, kDirect, kStaged };
GpuTransfer parse_gpu_transfer(std::string_view text);  ///< throws UsageError
std::string_view to_string(GpuTransfer transfer);

/// What was chosen, for log and trace.
struct GpuChoice {
  GpuTransfer kind = GpuTransfer::kOff;
  std::string reason;
  std::string device;  ///< of this rank
  double to_gpu_gb_s =
      0;  ///< staged: from the host; direct: a worker's put to the servers' devices, the slowest worker's
  double from_gpu_gb_s = 0;
  std::string to_text() const;  ///< one line
};

/// Collective over roles.job: where direct is wanted or possible, puts and gets a MiB of device memory between every
/// worker and every server and compares. That MPI says it can is not enough; that it says it cannot is, since a put
/// would crash. Throws UsageError where `wanted` is kDirect and it does not work; ends the process, exit code 2, where
/// it hangs for 30 s. `wanted` is not kOff.
GpuChoice choose_gpu_transfer(const Roles& roles, TransportKind transport, GpuTransfer wanted, Device& device);

}  // namespace fluentps
