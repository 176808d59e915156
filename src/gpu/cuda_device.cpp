#include "gpu/cuda_device.hpp"

#include <fmt/format.h>

#include "gpu/kernels.hpp"

namespace fluentps {

CudaDevice::Selected::Selected(int device) : index(device) { FLUENTPS_CUDA(cudaSetDevice(device)); }

CudaDevice::CudaDevice(int index) : selected_(index) {
  int ordering = 0;
  int can_flush = 0;
  FLUENTPS_CUDA(cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, index));
  FLUENTPS_CUDA(cudaDeviceGetAttribute(&can_flush, cudaDevAttrGPUDirectRDMAFlushWritesOptions, index));
  flushes_remote_ = ordering < static_cast<int>(cudaGPUDirectRDMAWritesOrderingOwner) &&
                    (can_flush & static_cast<int>(cudaFlushGPUDirectRDMAWritesOptionHost)) != 0;
  partial_ = reinterpret_cast<double*>(allocate(kNormBlocks * sizeof(double)));
}

CudaDevice::~CudaDevice() { release(reinterpret_cast<std::byte*>(partial_)); }

std::string CudaDevice::name() const {
  cudaDeviceProp properties{};
  int devices = 0;
  FLUENTPS_CUDA(cudaGetDeviceProperties(&properties, selected_.index));
  FLUENTPS_CUDA(cudaGetDeviceCount(&devices));
  return fmt::format("{} (device {} of {})", properties.name, selected_.index, devices);
}

std::byte* CudaDevice::allocate(std::size_t bytes) {
  void* memory = nullptr;
  FLUENTPS_CUDA(cudaMalloc(&memory, bytes));
  const auto& compute = stream(DeviceStream::kCompute);
  FLUENTPS_CUDA(cudaMemsetAsync(memory, 0, bytes, compute.get()));
  compute.synchronize();  // other streams may write to it at once
  return static_cast<std::byte*>(memory);
}

void CudaDevice::release(std::byte* memory) noexcept { FLUENTPS_CUDA_LOG(cudaFree(memory)); }

std::byte* CudaDevice::allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  FLUENTPS_CUDA(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
  return static_cast<std::byte*>(memory);
}

void CudaDevice::release_pinned(std::byte* memory) noexcept { FLUENTPS_CUDA_LOG(cudaFreeHost(memory)); }

/// Memory that MPI shares between processes or has registered itself may be refused; then it stays as it is.
bool CudaDevice::pin(std::span<std::byte> memory) {
  const bool pinned = cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterDefault) == cudaSuccess;
  if (!pinned) (void)cudaGetLastError();
  return pinned;
}

void CudaDevice::unpin(std::span<std::byte> memory) noexcept { FLUENTPS_CUDA_LOG(cudaHostUnregister(memory.data())); }

bool CudaDevice::owns(const void* memory) const {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeDevice && attributes.device == selected_.index;
}

void CudaDevice::copy_in(std::byte* device, const std::byte* host, std::size_t bytes) {
  FLUENTPS_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream(DeviceStream::kIn).get()));
}

void CudaDevice::copy_out(std::byte* host, const std::byte* device, std::size_t bytes) {
  FLUENTPS_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream(DeviceStream::kOut).get()));
}

void CudaDevice::run(const Pass& pass) { launch_pass(pass, stream(DeviceStream::kCompute).get()); }

void CudaDevice::squared_norm(std::span<const float> values, double* result) {
  launch_squared_norm(values, partial_, result, stream(DeviceStream::kCompute).get());
}

void CudaDevice::see_remote_writes() {
  if (flushes_remote_)
    FLUENTPS_CUDA(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                                     cudaFlushGPUDirectRDMAWritesToOwner));
}

std::unique_ptr<DeviceEvent> CudaDevice::make_event() { return std::make_unique<CudaEvent>(); }

void CudaDevice::record(DeviceEvent& event, DeviceStream which) {
  static_cast<CudaEvent&>(event).record(stream(which));
}

void CudaDevice::wait(DeviceStream which, const DeviceEvent& event) {
  FLUENTPS_CUDA(cudaStreamWaitEvent(stream(which).get(), static_cast<const CudaEvent&>(event).get(), 0));
}

void CudaDevice::synchronize(const DeviceEvent& event) {
  FLUENTPS_CUDA(cudaEventSynchronize(static_cast<const CudaEvent&>(event).get()));
}

void CudaDevice::synchronize(DeviceStream which) { stream(which).synchronize(); }

}  // namespace fluentps
