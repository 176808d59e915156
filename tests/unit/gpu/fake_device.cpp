#include "fake_device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "shard/shard_memory.hpp"

namespace fluentps::test {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr const char* kNames[] = {"in", "compute", "out"};

}  // namespace

struct FakeDevice::Stream {
  const char* name;
  std::deque<Work> work;
  std::uint64_t given = 0;
  std::uint64_t done = 0;
  int numbered = 0;
  std::function<void(int)> during;
  std::thread thread;
};

/// As CUDA's: a wait is for what was recorded last when the wait was given.
struct FakeDevice::Event : DeviceEvent {
  Stream* stream = nullptr;
  std::uint64_t place = 0;
};

FakeDevice::FakeDevice(const Options& options) : options_(options) {
  const int memory = ::memfd_create("fake-device", 0);
  if (memory < 0 || ::ftruncate(memory, static_cast<off_t>(options.bytes)) != 0)
    throw std::runtime_error("no memory for a fake device");
  const int outside = options.host_accessible ? PROT_READ | PROT_WRITE : PROT_NONE;
  outer_ = static_cast<std::byte*>(::mmap(nullptr, options.bytes, outside, MAP_SHARED, memory, 0));
  inner_ = static_cast<std::byte*>(::mmap(nullptr, options.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
  ::close(memory);
  for (const char* name : kNames) {
    streams_.push_back(std::make_unique<Stream>());
    streams_.back()->name = name;
  }
  for (auto& stream : streams_) stream->thread = std::thread([this, &stream = *stream] { serve(stream); });
}

FakeDevice::~FakeDevice() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    paused_ = false;
  }
  changed_.notify_all();
  for (auto& stream : streams_) stream->thread.join();
  ::munmap(outer_, options_.bytes);
  ::munmap(inner_, options_.bytes);
}

std::byte* FakeDevice::allocate(std::size_t bytes) {
  const auto at = (next_ + kAlignment - 1) / kAlignment * kAlignment;
  if (at + bytes > options_.bytes) throw DeviceError("fake device: out of memory");
  next_ = at + bytes;
  arrays_[outer_ + at] = bytes;
  return outer_ + at;
}

void FakeDevice::release(std::byte* memory) noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& stream : streams_)
    if (!stream->work.empty()) std::abort();  // given back while it may be in use
  if (arrays_.erase(memory) != 1) std::abort();
}

std::byte* FakeDevice::allocate_pinned(std::size_t bytes) {
  auto* memory = static_cast<std::byte*>(std::malloc(bytes));
  ++pinned_count_;
  pinned_[memory] = bytes;
  pinned_arrays_.insert(memory);
  return memory;
}

void FakeDevice::release_pinned(std::byte* memory) noexcept {
  if (pinned_arrays_.erase(memory) != 1) std::abort();
  pinned_.erase(memory);
  std::free(memory);
}

bool FakeDevice::pin(std::span<std::byte> memory) {
  if (!options_.can_pin) return false;
  ++pinned_count_;
  pinned_[memory.data()] = memory.size();
  return true;
}

void FakeDevice::unpin(std::span<std::byte> memory) noexcept {
  if (pinned_.erase(memory.data()) != 1) std::abort();
}

bool FakeDevice::owns(const void* memory) const { return memory >= outer_ && memory < outer_ + options_.bytes; }

template <typename T>
T* FakeDevice::inside(T* outer) const {
  if (!owns(outer)) throw DeviceError("fake device: not its memory");
  const auto shift = reinterpret_cast<std::uintptr_t>(outer) - reinterpret_cast<std::uintptr_t>(outer_);
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(inner_) + shift);
}

void FakeDevice::require_pinned(const std::byte* host, std::size_t bytes) const {
  const auto after = pinned_.upper_bound(host);
  if (after != pinned_.begin()) {
    const auto& [begin, size] = *std::prev(after);
    if (host + bytes <= begin + size) return;
  }
  throw DeviceError("fake device: a copy of memory that is not page-locked");
}

void FakeDevice::copy_in(std::byte* device, const std::byte* host, std::size_t bytes) {
  if (copies_until_failure_ > 0 && --copies_until_failure_ == 0) throw DeviceError("fake device: copy_in failed");
  if (bytes == 0) return;
  require_pinned(host, bytes);
  auto* to = inside(device);
  give(DeviceStream::kIn, {[=] { std::memcpy(to, host, bytes); }, true});
}

void FakeDevice::copy_out(std::byte* host, const std::byte* device, std::size_t bytes) {
  if (bytes == 0) return;
  require_pinned(host, bytes);
  const auto* from = inside(device);
  give(DeviceStream::kOut, {[=] { std::memcpy(host, from, bytes); }, true});
}

void FakeDevice::run(const Pass& pass) {
  std::visit(
      [this](auto own) {
        if (own.n == 0) return;
        std::apply([this](auto*&... arrays) { ((arrays = inside(arrays)), ...); }, own.arrays);
        give(DeviceStream::kCompute, {[own] { run_on_host(own); }, true});
      },
      pass);
}

void FakeDevice::squared_norm(std::span<const float> values, double* result) {
  const std::span<const float> from(values.empty() ? nullptr : inside(values.data()), values.size());
  auto* to = inside(result);
  give(DeviceStream::kCompute, {[=] { *to = HostMemory().squared_norms(std::span(&from, 1)).front(); }, true});
}

std::unique_ptr<DeviceEvent> FakeDevice::make_event() { return std::make_unique<Event>(); }

void FakeDevice::record(DeviceEvent& event, DeviceStream stream) {
  auto& own = static_cast<Event&>(event);
  give(stream, {[] {}, false});
  const std::lock_guard lock(mutex_);
  own.stream = &at(stream);
  own.place = own.stream->given;
}

void FakeDevice::wait(DeviceStream stream, const DeviceEvent& event) {
  const auto& own = static_cast<const Event&>(event);
  if (own.stream == nullptr) return;
  give(stream, {[this, on = own.stream, place = own.place] {
                  std::unique_lock lock(mutex_);
                  changed_.wait(lock, [&] { return on->done >= place || ends_; });
                },
                false});
}

void FakeDevice::synchronize(const DeviceEvent& event) {
  const auto& own = static_cast<const Event&>(event);
  std::unique_lock lock(mutex_);
  if (own.stream != nullptr) changed_.wait(lock, [&] { return own.stream->done >= own.place; });
  if (!error_.empty()) throw DeviceError(error_);
}

void FakeDevice::synchronize(DeviceStream stream) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return at(stream).done == at(stream).given; });
  if (!error_.empty()) throw DeviceError(error_);
}

void FakeDevice::pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
}

void FakeDevice::resume() {
  {
    const std::lock_guard lock(mutex_);
    paused_ = false;
  }
  changed_.notify_all();
}

void FakeDevice::during(DeviceStream stream, std::function<void(int)> what) {
  const std::lock_guard lock(mutex_);
  at(stream).during = std::move(what);
}

FakeDevice::Log FakeDevice::log() const {
  const std::lock_guard lock(mutex_);
  return log_;
}

std::size_t FakeDevice::unreturned() const { return arrays_.size() + pinned_.size(); }

void FakeDevice::give(DeviceStream stream, Work work) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_.empty()) throw DeviceError(error_);
    at(stream).work.push_back(std::move(work));
    ++at(stream).given;
  }
  changed_.notify_all();
}

/// Work stays in the queue while it runs, so that an empty queue is an idle stream.
void FakeDevice::serve(Stream& stream) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return (!paused_ && !stream.work.empty()) || (ends_ && stream.work.empty()); });
    if (stream.work.empty()) return;
    const auto work = stream.work.front();
    const int number = stream.numbered;
    if (work.logged) log_.push_back("begin " + std::string(stream.name) + " " + std::to_string(stream.numbered++));
    const auto during = stream.during;
    lock.unlock();
    std::string error;
    try {
      if (work.logged && during) during(number);
      work.what();
    } catch (const std::exception& failure) {
      error = failure.what();
    }
    lock.lock();
    if (work.logged) log_.push_back("end " + std::string(stream.name) + " " + std::to_string(number));
    if (!error.empty()) error_ = error;
    stream.work.pop_front();
    ++stream.done;
    changed_.notify_all();
  }
}

}  // namespace fluentps::test
