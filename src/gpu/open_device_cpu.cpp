/// The build without GPUs.
#include "fluentps/error.hpp"
#include "gpu/open_device.hpp"

namespace fluentps {

bool built_with_cuda() { return false; }

void require_cuda_build() {
  throw UsageError("--gpu-transfer needs a build with GPUs, and this is one without; build with make CUDA=1");
}

GpuFacts look_at_gpus(int) { return {}; }

std::unique_ptr<Device> open_device(int) {
  require_cuda_build();
  return nullptr;
}

}  // namespace fluentps
