/// A device whose memory is the host's behind another address: the host's own touch of it is a segmentation fault, so a
/// test that passes has not cheated. Its streams are threads, its log tells in which order things began and ended, and
/// any call can be told to be slow or to fail.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "shard/device.hpp"

namespace fluentps::test {

class FakeDevice final : public Device {
 public:
  /// What happened, e.g. "begin in 3", "end compute 0": the third thing after the first on stream kIn.
  using Log = std::vector<std::string>;
  struct Options {
    std::size_t bytes = std::size_t{64} << 20;  ///< of all its memory
    bool host_accessible = false;
    bool can_pin = true;
  };

  FakeDevice() : FakeDevice(Options()) {}
  explicit FakeDevice(const Options& options);
  ~FakeDevice() override;

  std::string name() const override { return "fake device"; }
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* memory) noexcept override;
  std::byte* allocate_pinned(std::size_t bytes) override;
  void release_pinned(std::byte* memory) noexcept override;
  bool pin(std::span<std::byte> memory) override;
  void unpin(std::span<std::byte> memory) noexcept override;
  bool owns(const void* memory) const override;
  bool host_accessible() const override { return options_.host_accessible; }
  void copy_in(std::byte* device, const std::byte* host, std::size_t bytes) override;
  void copy_out(std::byte* host, const std::byte* device, std::size_t bytes) override;
  void run(const Pass& pass) override;
  void squared_norm(std::span<const float> values, double* result) override;
  void see_remote_writes() override {}
  std::unique_ptr<DeviceEvent> make_event() override;
  void record(DeviceEvent& event, DeviceStream stream) override;
  void wait(DeviceStream stream, const DeviceEvent& event) override;
  void synchronize(const DeviceEvent& event) override;
  void synchronize(DeviceStream stream) override;

  /// Nothing given to the streams begins until resume.
  void pause();
  void resume();
  /// Called by the stream's thread within each of its copies and passes; may sleep, wait or throw.
  void during(DeviceStream stream, std::function<void(int)> what);
  /// From now on the n-th copy_in throws DeviceError at once.
  void fail_copy_in(int n) { copies_until_failure_ = n; }
  Log log() const;
  /// Arrays of the device and pinned ranges of the host that have not been given back.
  std::size_t unreturned() const;
  /// Allocations of page-locked memory and ranges pinned so far.
  int pinned_ranges() const { return pinned_count_; }

 private:
  struct Stream;
  struct Event;
  struct Work {
    std::function<void()> what;
    bool logged;
  };

  Stream& at(DeviceStream stream) const { return *streams_[static_cast<std::size_t>(stream)]; }
  void give(DeviceStream stream, Work work);
  void serve(Stream& stream);
  template <typename T>
  T* inside(T* outer) const;  ///< the address that may be touched
  void require_pinned(const std::byte* host, std::size_t bytes) const;

  Options options_;
  std::byte* outer_ = nullptr;
  std::byte* inner_ = nullptr;
  std::size_t next_ = 0;
  std::map<std::byte*, std::size_t> arrays_;
  std::map<const std::byte*, std::size_t> pinned_;
  std::set<std::byte*> pinned_arrays_;
  int pinned_count_ = 0;
  int copies_until_failure_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool paused_ = false;
  bool ends_ = false;
  Log log_;
  std::string error_;  ///< of a stream: all waits throw it
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace fluentps::test
