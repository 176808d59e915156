/// One-sided memory: the only place that calls MPI's RMA functions.
///
/// A window on the host is allocated, not created (created windows fail on some components and stall without a target
/// inside MPI), lies in one lock_all epoch for its whole life, begins on a cache line, and checks its bounds itself:
/// MPI lets a put past the end through.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace fluentps {

/// An access outside of a window; names the target rank, the access and the limit. Nothing was moved.
class RangeError : public std::out_of_range {
 public:
  using std::out_of_range::out_of_range;
};

class Window {
 public:
  /// Collective over `comm`, which has at least two ranks. `bytes` is what this rank exposes, 0 for none.
  Window(MPI_Comm comm, std::int64_t bytes, const char* name);
  /// The same over memory that is there already and outlives the window, such as a device's; may be empty.
  Window(MPI_Comm comm, std::span<std::byte> memory, const char* name);
  /// Collective, unless an exception unwinds.
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// What this rank exposes.
  std::span<std::byte> memory() const { return {base_, static_cast<std::size_t>(bytes_)}; }
  /// Whether all ranks are on one node and load and store each other's memory.
  bool shared() const { return shared_; }
  /// Bytes that `rank` exposes.
  std::int64_t limit(int rank) const { return limits_[static_cast<std::size_t>(rank)]; }

  /// Starts writing `data` at byte `offset` of `target`. Any size: cut below INT_MAX. Throws RangeError, MpiError.
  void put(int target, std::int64_t offset, std::span<const std::byte> data);
  /// Starts reading `into.size()` bytes at byte `offset` of `target`.
  void get(int target, std::int64_t offset, std::span<std::byte> into);
  /// All puts and gets to `target` are complete, here and there.
  void flush(int target);
  /// Puts of others that were flushed before their message arrived are visible to loads here.
  void sync();

 private:
  void open(MPI_Comm comm, std::int64_t shift);
  void lock();
  void unlock();
  void require_inside(int target, std::int64_t offset, std::size_t bytes, const char* what) const;

  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* base_ = nullptr;
  std::int64_t bytes_ = 0;
  bool shared_ = false;
  const char* name_;
  std::vector<std::int64_t> limits_;
  std::vector<std::int64_t> shifts_;  ///< by rank: bytes from the allocation's start to memory()
};

}  // namespace fluentps
