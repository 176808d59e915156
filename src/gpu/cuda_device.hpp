/// The Device interface on CUDA.
#pragma once

#include <array>

#include "gpu/cuda_handles.hpp"
#include "shard/device.hpp"

namespace fluentps {

class CudaDevice final : public Device {
 public:
  /// Makes device `index` the current one of the calling thread, which is the one that uses it from then on.
  explicit CudaDevice(int index);
  ~CudaDevice() override;

  std::string name() const override;
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory) noexcept override;
  std::byte* allocate_pinned(std::size_t bytes) override;
  void release_pinned(std::byte* memory) noexcept override;
  bool pin(std::span<std::byte> memory) override;
  void unpin(std::span<std::byte> memory) noexcept override;
  bool owns(const void* memory) const override;
  bool host_accessible() const override { return false; }
  void copy_in(std::byte* device, const std::byte* host, std::size_t bytes) override;
  void copy_out(std::byte* host, const std::byte* device, std::size_t bytes) override;
  void run(const Pass& pass) override;
  void squared_norm(std::span<const float> values, double* result) override;
  void see_remote_writes() override;
  std::unique_ptr<DeviceEvent> make_event() override;
  void record(DeviceEvent& event, DeviceStream stream) override;
  void wait(DeviceStream stream, const DeviceEvent& event) override;
  void synchronize(const DeviceEvent& event) override;
  void synchronize(DeviceStream stream) override;

  const CudaStream& stream(DeviceStream which) const { return streams_[static_cast<std::size_t>(which)]; }

 private:
  /// Makes the device current before the members are made on it.
  struct Selected {
    explicit Selected(int index);
    int index;
  };

  Selected selected_;
  std::array<CudaStream, 3> streams_;
  double* partial_ = nullptr;    ///< of launch_squared_norm; passes run one after the other
  bool flushes_remote_ = false;  ///< remote writes are seen only after a flush
};

}  // namespace fluentps
