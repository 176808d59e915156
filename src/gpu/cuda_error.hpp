/// Checked calls of the CUDA run-time library. Checks are never compiled out.
#pragma once

#include <cuda_runtime_api.h>

#include "shard/device.hpp"

namespace fluentps {

/// Names the call, CUDA's text and the place. CUDA reports asynchronously: the failure may be of an earlier call.
class CudaError : public DeviceError {
 public:
  CudaError(cudaError_t code, const char* call, const char* file, int line);
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

inline void check_cuda(cudaError_t code, const char* call, const char* file, int line) {
  if (code != cudaSuccess) throw CudaError(code, call, file, line);
}

/// For destructors: logs.
void log_cuda(cudaError_t code, const char* call) noexcept;

}  // namespace fluentps

#define FLUENTPS_CUDA(call) ::fluentps::check_cuda((call), #call, __FILE__, __LINE__)
#define FLUENTPS_CUDA_LOG(call) ::fluentps::log_cuda((call), #call)
