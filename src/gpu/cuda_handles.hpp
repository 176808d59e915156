/// CUDA's streams and events as owners, move-only. Destroyed on the device on which they were made.
#pragma once

#include <utility>

#include "gpu/cuda_error.hpp"

namespace fluentps {

/// Does not wait for the legacy default stream, nor that for it.
class CudaStream {
 public:
  CudaStream() { FLUENTPS_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~CudaStream() {
    if (stream_ != nullptr) FLUENTPS_CUDA_LOG(cudaStreamDestroy(stream_));
  }
  CudaStream(CudaStream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  CudaStream& operator=(CudaStream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }

  cudaStream_t get() const { return stream_; }
  void synchronize() const { FLUENTPS_CUDA(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// `timing`: for elapsed_ms; without it waiting for the event is cheaper.
class CudaEvent final : public DeviceEvent {
 public:
  explicit CudaEvent(bool timing = false) {
    FLUENTPS_CUDA(cudaEventCreateWithFlags(&event_, timing ? cudaEventDefault : cudaEventDisableTiming));
  }
  ~CudaEvent() override {
    if (event_ != nullptr) FLUENTPS_CUDA_LOG(cudaEventDestroy(event_));
  }
  CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }

  cudaEvent_t get() const { return event_; }
  void record(const CudaStream& stream) { FLUENTPS_CUDA(cudaEventRecord(event_, stream.get())); }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Between two events made with `timing` that have passed.
inline float elapsed_ms(const CudaEvent& begin, const CudaEvent& end) {
  float result = 0;
  FLUENTPS_CUDA(cudaEventElapsedTime(&result, begin.get(), end.get()));
  return result;
}

}  // namespace fluentps
