#include "net/gpu_transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "fluentps/error.hpp"
#include "net/agree.hpp"
#include "net/mpi_error.hpp"
#include "net/watchdog.hpp"
#include "net/window.hpp"
#include "shard/device_memory.hpp"

#if !defined(FLUENTPS_SIMULATED) && defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

namespace fluentps {
namespace {

constexpr std::size_t kProbeElements = std::size_t{1} << 18;
constexpr std::size_t kProbeBytes = kProbeElements * sizeof(float);

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Of one copy of `bytes` by `copy`, the best of a few. GB/s.
template <typename Copy>
double best_rate(std::size_t bytes, Copy copy) {
  double best = 0;
  for (int k = 0; k < 4; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    copy();
    best = std::max(best, static_cast<double>(bytes) * 1e-9 / seconds_since(begin));
  }
  return best;
}

void measure_copies(Device& device, GpuChoice& choice) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  const auto on_device = device_array<std::byte>(device, kBytes);
  const auto on_host = pinned_array<std::byte>(device, kBytes);
  choice.to_gpu_gb_s = best_rate(kBytes, [&] {
    device.copy_in(on_device.bytes(), on_host.bytes(), kBytes);
    device.synchronize(DeviceStream::kIn);
  });
  choice.from_gpu_gb_s = best_rate(kBytes, [&] {
    device.copy_out(on_host.bytes(), on_device.bytes(), kBytes);
    device.synchronize(DeviceStream::kOut);
  });
}

/// Of this rank's MPI alone.
bool mpi_denies(const Device& device) {
  if (device.host_accessible()) return false;
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() != 1;
#else
  return true;
#endif
}

/// A worker's MiB in every server's device memory and back into its own.
void try_server(const Roles& roles, int server, Window& window, Device& device, GpuChoice& choice) {
  DeviceMemory memory(device);
  const auto sent = memory.allocate(kProbeElements);
  const auto received = memory.allocate(kProbeElements);
  std::vector<float> values(kProbeElements, 1.0F + static_cast<float>(roles.index));
  memory.write(sent, values);
  const auto at = static_cast<std::int64_t>(roles.index * kProbeBytes);
  const auto lower = [](double& rate, double measured) { rate = rate > 0 ? std::min(rate, measured) : measured; };
  lower(choice.to_gpu_gb_s, best_rate(kProbeBytes, [&] {
          window.put(server, at, std::as_bytes(sent));
          window.flush(server);
        }));
  lower(choice.from_gpu_gb_s, best_rate(kProbeBytes, [&] {
          window.get(server, at, std::as_writable_bytes(received));
          window.flush(server);
        }));
  std::vector<float> back(kProbeElements);
  memory.read(received, back);
  if (back != values)
    throw RunError(
        fmt::format("what was put into the device memory of rank {} was read back as something else", server));
}

void slowest_of_all(const Roles& roles, double& rate) {
  constexpr double kNone = 1e30;  // servers measure nothing
  double own = rate > 0 ? rate : kNone;
  FLUENTPS_MPI(MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, MPI_MIN, roles.job.get()));
  rate = own < kNone ? own : 0;
}

void try_direct(const Roles& roles, TransportKind transport, Device& device, GpuChoice& choice) {
  agree(roles.job.get(), [&] {
    if (transport != TransportKind::kRma) throw RunError("it needs one-sided windows, and the transport is p2p");
    if (mpi_denies(device)) throw RunError("this MPI library says that it cannot move device memory");
  });
  const Watchdog watchdog("the self-test of put and get on device memory", "--gpu-transfer staged");
  const bool is_server = roles.role == Role::kServer;
  DeviceArray<std::byte> exposed;
  std::optional<Window> window;
  agree(roles.job.get(), [&] {
    if (is_server) exposed = device_array<std::byte>(device, roles.worker_count() * kProbeBytes);
    window.emplace(roles.job.get(), exposed.span(), "GPU self-test");
  });
  agree(roles.job.get(), [&] {
    if (is_server) return;
    for (const int server : roles.rank_of_server) try_server(roles, server, *window, device, choice);
  });
  slowest_of_all(roles, choice.to_gpu_gb_s);
  slowest_of_all(roles, choice.from_gpu_gb_s);
}

}  // namespace

GpuTransfer parse_gpu_transfer(std::string_view text) {
  if (text == "off") return GpuTransfer::kOff;
  if (text == "auto") return GpuTransfer::kAuto;
  if (text == "direct") return GpuTransfer::kDirect;
  if (text == "staged") return GpuTransfer::kStaged;
  throw UsageError(fmt::format("unknown --gpu-transfer '{}'; use off, auto, direct or staged", text));
}

std::string_view to_string(GpuTransfer transfer) {
  switch (transfer) {
    case GpuTransfer::kOff:
      return "off";
    case GpuTransfer::kAuto:
      return "auto";
    case GpuTransfer::kDirect:
      return "direct";
    case GpuTransfer::kStaged:
      return "staged";
  }
  return "?";
}

std::string GpuChoice::to_text() const {
  return fmt::format("{}: {}; {:.1f} GB/s to the GPU, {:.1f} GB/s from it; {}", to_string(kind), reason, to_gpu_gb_s,
                     from_gpu_gb_s, device);
}

GpuChoice choose_gpu_transfer(const Roles& roles, TransportKind transport, GpuTransfer wanted, Device& device) {
  GpuChoice choice{.kind = GpuTransfer::kStaged, .reason = "as asked", .device = device.name()};
  if (wanted != GpuTransfer::kStaged) try {
      try_direct(roles, transport, device, choice);
      choice.kind = GpuTransfer::kDirect;
      choice.reason = "put and get of device memory work between every worker and every server";
      return choice;
    } catch (const RunError& error) {
      if (wanted == GpuTransfer::kDirect)
        throw UsageError(
            fmt::format("--gpu-transfer direct does not work here ({}); use --gpu-transfer auto or staged, "
                        "or an MPI with UCX built for CUDA (--mca osc ucx --mca pml ucx)",
                        error.what()));
      choice.reason = fmt::format("direct does not work here ({})", error.what());
    }
  agree(roles.job.get(), [&] { measure_copies(device, choice); });
  return choice;
}

}  // namespace fluentps
