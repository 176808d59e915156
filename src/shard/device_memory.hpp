/// The vectors of a shard in a device's memory. Plain C++ over the Device interface.
#pragma once

#include <vector>

#include "shard/device.hpp"
#include "shard/shard_memory.hpp"

namespace fluentps {

class DeviceMemory final : public ShardMemory {
 public:
  /// `device` outlives the memory. Copies to and from the host go through two page-locked pieces of `piece_bytes`.
  explicit DeviceMemory(Device& device, std::size_t piece_bytes = std::size_t{1} << 20);
  ~DeviceMemory() override { quiesce(); }

  std::span<float> allocate(std::size_t n) override;
  bool on_host() const override { return false; }
  void run(const Pass& pass) override { device_.run(pass); }
  std::vector<double> squared_norms(std::span<const std::span<const float>> parts) override;
  bool all_finite(std::span<const float> values) override;
  void write(std::span<float> to, std::span<const float> host) override;
  void read(std::span<const float> from, std::span<float> host) override;
  void finish() override { device_.synchronize(DeviceStream::kCompute); }
  /// Waits for all streams; an error is logged, not thrown. For destructors: memory in use must not be given back.
  void quiesce() noexcept;

 private:
  struct Piece {
    DeviceArray<float> memory;
    std::unique_ptr<DeviceEvent> copied;
  };
  void make_pieces();
  void synchronize_all();

  Device& device_;
  std::size_t piece_elements_;
  std::vector<DeviceArray<float>> arrays_;
  std::vector<Piece> pieces_;
  bool failed_ = false;  ///< an error has been logged
  DeviceArray<double> norms_;
  DeviceArray<double> norms_on_host_;
};

}  // namespace fluentps
