#include "fluentps/error.hpp"
#include "gpu/cuda_device.hpp"
#include "gpu/open_device.hpp"

namespace fluentps {

bool built_with_cuda() { return true; }

void require_cuda_build() {}

GpuFacts look_at_gpus(int node_rank) {
  GpuFacts facts;
  // Without a driver these say so by an error, which is the answer.
  if (cudaDriverGetVersion(&facts.driver_version) != cudaSuccess) facts.driver_version = 0;
  if (cudaRuntimeGetVersion(&facts.runtime_version) != cudaSuccess) facts.runtime_version = 0;
  if (cudaGetDeviceCount(&facts.devices) != cudaSuccess) facts.devices = 0;
  (void)cudaGetLastError();
  if (facts.devices == 0) return facts;
  facts.own = node_rank % facts.devices;
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, facts.own) == cudaSuccess)
    facts.own_id = (static_cast<std::uint64_t>(properties.pciDomainID) << 32U) |
                   (static_cast<std::uint64_t>(properties.pciBusID) << 8U) |
                   static_cast<std::uint64_t>(properties.pciDeviceID);
  for (int other = 0; other < facts.devices; ++other) {
    int reachable = 0;
    if (other != facts.own && cudaDeviceCanAccessPeer(&reachable, facts.own, other) == cudaSuccess)
      facts.peers += reachable;
  }
  return facts;
}

std::unique_ptr<Device> open_device(int node_rank) {
  int devices = 0;
  FLUENTPS_CUDA(cudaGetDeviceCount(&devices));
  return std::make_unique<CudaDevice>(node_rank % devices);
}

}  // namespace fluentps
