/// An accelerator as the rest of the program sees it: memory of its own, streams of work, and passes over its arrays.
/// src/gpu has CUDA's; the tests have one whose memory is the host's, kept from the host's touch. Plain C++.
///
///   stream kIn       copies from the host          These run beside each other; what must be ordered between two
///   stream kCompute  passes                        of them is ordered by an event: record on the one, wait on the
///   stream kOut      copies to the host            other. Work of one stream runs in the order in which it was given.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "fluentps/error.hpp"
#include "shard/pass.hpp"

namespace fluentps {

/// A call of the accelerator's library that failed: which, why, and where. Work given before may surface here.
class DeviceError : public RunError {
 public:
  using RunError::RunError;
};

enum class DeviceStream : std::uint8_t { kIn, kCompute, kOut };

/// A place in a stream, set by Device::record. Made by a device and destroyed before it.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
};

/// Used by one thread. All sizes in bytes, of arrays in elements. Everything throws DeviceError.
class Device {
 public:
  virtual ~Device() = default;
  /// For log and trace, e.g. "NVIDIA A100-SXM4-40GB (device 0 of 4)".
  virtual std::string name() const = 0;

  /// Zeroed, aligned to 256 bytes. Given back with release, when nothing under way uses it.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  /// The host's memory, page-locked, so that copies run beside everything else.
  virtual std::byte* allocate_pinned(std::size_t bytes) = 0;
  virtual void release_pinned(std::byte* memory) noexcept = 0;
  /// Page-locks memory that is there already, until unpin; false where that cannot be done with it.
  virtual bool pin(std::span<std::byte> memory) = 0;
  virtual void unpin(std::span<std::byte> memory) noexcept = 0;
  /// Whether `memory` lies on this device.
  virtual bool owns(const void* memory) const = 0;
  /// Whether the host's processor, and so any MPI, reads and writes this device's memory.
  virtual bool host_accessible() const = 0;

  /// Start a copy; `host` is page-locked and untouched until an event after it, or the stream, has been waited for.
  virtual void copy_in(std::byte* device, const std::byte* host, std::size_t bytes) = 0;   ///< on kIn
  virtual void copy_out(std::byte* host, const std::byte* device, std::size_t bytes) = 0;  ///< on kOut
  /// Starts a pass over arrays of this device, on kCompute.
  virtual void run(const Pass& pass) = 0;
  /// Starts *result := sum of values[j]^2 in double, on kCompute; `result` lies on this device.
  virtual void squared_norm(std::span<const float> values, double* result) = 0;
  /// What other devices and network cards have written here becomes visible to passes started from now on.
  virtual void see_remote_writes() = 0;

  virtual std::unique_ptr<DeviceEvent> make_event() = 0;
  virtual void record(DeviceEvent& event, DeviceStream stream) = 0;
  /// `stream` goes on only when the event, as last recorded, has passed. An event never recorded has passed.
  virtual void wait(DeviceStream stream, const DeviceEvent& event) = 0;
  /// The host waits.
  virtual void synchronize(const DeviceEvent& event) = 0;
  virtual void synchronize(DeviceStream stream) = 0;
};

/// Memory of a device, or page-locked memory of the host, given back by the destructor. Empty when moved from.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(Device& device, std::size_t n, bool pinned)
      : device_(&device),
        memory_(n == 0 ? nullptr : (pinned ? device.allocate_pinned(n * sizeof(T)) : device.allocate(n * sizeof(T)))),
        n_(n),
        pinned_(pinned) {}
  ~DeviceArray() { reset(); }
  DeviceArray(DeviceArray&& other) noexcept { *this = std::move(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    if (this == &other) return *this;
    reset();
    device_ = other.device_;
    memory_ = std::exchange(other.memory_, nullptr);
    n_ = std::exchange(other.n_, 0);
    pinned_ = other.pinned_;
    return *this;
  }

  std::span<T> span() const { return {reinterpret_cast<T*>(memory_), n_}; }
  std::byte* bytes() const { return memory_; }

 private:
  void reset() noexcept {
    if (memory_ == nullptr) return;
    if (pinned_)
      device_->release_pinned(memory_);
    else
      device_->release(memory_);
    memory_ = nullptr;
  }

  Device* device_ = nullptr;
  std::byte* memory_ = nullptr;
  std::size_t n_ = 0;
  bool pinned_ = false;
};

template <typename T>
DeviceArray<T> device_array(Device& device, std::size_t n) {
  return DeviceArray<T>(device, n, false);
}
template <typename T>
DeviceArray<T> pinned_array(Device& device, std::size_t n) {
  return DeviceArray<T>(device, n, true);
}

}  // namespace fluentps
