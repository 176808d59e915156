#include "gpu/cuda_error.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace fluentps {

CudaError::CudaError(cudaError_t code, const char* call, const char* file, int line)
    : DeviceError(fmt::format("{} failed: {} ({}) at {}:{}", call, cudaGetErrorString(code), cudaGetErrorName(code),
                              file, line)),
      code_(code) {}

void log_cuda(cudaError_t code, const char* call) noexcept {
  if (code != cudaSuccess && code != cudaErrorCudartUnloading)
    std::fprintf(stderr, "fluentps: %s failed: %s\n", call, cudaGetErrorString(code));
}

}  // namespace fluentps
