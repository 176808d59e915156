#include "net/window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "net/comm.hpp"
#include "net/mpi_error.hpp"
#include "net/simulated.hpp"

namespace fluentps {
namespace {

/// Largest single transfer: below INT_MAX and a whole number of pages.
constexpr std::size_t kLargestTransfer = std::size_t{1} << 30;

/// Open MPI 4.1.4 allocates at addresses of 8 modulo 16. A copy between such an address and one of malloc, 8 bytes
/// apart modulo the page, ran 13 times slower than any other (974 us against 75 us for 3.4 MB).
constexpr std::int64_t kAlignment = 64;

std::vector<std::int64_t> gather(MPI_Comm comm, std::int64_t own) {
  int ranks = 0;
  FLUENTPS_MPI(MPI_Comm_size(comm, &ranks));
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks));
  FLUENTPS_MPI(MPI_Allgather(&own, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, comm));
  return all;
}

/// Memory that the ranks of one node share moves by plain copies, and its flush is a fence, where osc rdma's enters
/// MPI's progress and gives the core away: 3.4 MB, 2 servers, 4 workers on 2 cores: 6 % more iterations. Null on
/// several nodes, and where the user's choice of one-sided components leaves none for it.
MPI_Win allocate_shared(MPI_Comm comm, std::int64_t bytes, std::byte*& base) {
  MPI_Win window = MPI_WIN_NULL;
#ifndef FLUENTPS_SIMULATED  // ranks of a simulated cluster are on nodes of their own, in one process
  int ranks = 0;
  FLUENTPS_MPI(MPI_Comm_size(comm, &ranks));
  const auto node = Comm::split_node(comm);  // returns errors, in the order of comm
  if (node.size() < ranks) return window;
  MPI_Info info = MPI_INFO_NULL;
  FLUENTPS_MPI(MPI_Info_create(&info));
  FLUENTPS_MPI(MPI_Info_set(info, "alloc_shared_noncontig", "true"));  // else pages are shared by neighbours
  const int code = MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes), 1, info, node.get(), &base, &window);
  MPI_Info_free(&info);
  if (code != MPI_SUCCESS) return MPI_WIN_NULL;
#endif
  return window;
}

}  // namespace

Window::Window(MPI_Comm comm, std::int64_t bytes, const char* name) : bytes_(bytes), name_(name) {
  const std::int64_t allocated = bytes > 0 ? bytes + kAlignment : 0;
  window_ = allocate_shared(comm, allocated, base_);
  shared_ = window_ != MPI_WIN_NULL;
  if (!shared_)
    FLUENTPS_MPI(MPI_Win_allocate(static_cast<MPI_Aint>(allocated), 1, MPI_INFO_NULL, comm, &base_, &window_));
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(base_) % kAlignment);
  const std::int64_t shift = bytes > 0 && misaligned > 0 ? kAlignment - misaligned : 0;
  base_ += shift;
  open(comm, shift);
}

Window::Window(MPI_Comm comm, std::span<std::byte> memory, const char* name)
    : base_(memory.data()), bytes_(static_cast<std::int64_t>(memory.size())), name_(name) {
  FLUENTPS_MPI(MPI_Win_create(base_, static_cast<MPI_Aint>(bytes_), 1, MPI_INFO_NULL, comm, &window_));
  open(comm, 0);
}

void Window::open(MPI_Comm comm, std::int64_t shift) {
  limits_ = gather(comm, bytes_);
  shifts_ = gather(comm, shift);
  FLUENTPS_MPI(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN));
  lock();
}

Window::~Window() {
  if (window_ == MPI_WIN_NULL || std::uncaught_exceptions() > 0) return;
  unlock();
  MPI_Win_free(&window_);
}

/// SimGrid 3.32 does lock_all rank by rank, with several events of the simulator each: a million locks at 1040 ranks.
/// There it is enough to lock who exposes something.
void Window::lock() {
  if (!kSimulated) {
    FLUENTPS_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_));
    return;
  }
  for (int rank = 0; rank < static_cast<int>(limits_.size()); ++rank)
    if (limit(rank) > 0) FLUENTPS_MPI(MPI_Win_lock(MPI_LOCK_SHARED, rank, MPI_MODE_NOCHECK, window_));
}

void Window::unlock() {
  if (!kSimulated) {
    MPI_Win_unlock_all(window_);
    return;
  }
  for (int rank = 0; rank < static_cast<int>(limits_.size()); ++rank)
    if (limit(rank) > 0) MPI_Win_unlock(rank, window_);
}

void Window::require_inside(int target, std::int64_t offset, std::size_t bytes, const char* what) const {
  const bool known = target >= 0 && static_cast<std::size_t>(target) < limits_.size();
  const std::int64_t end = known ? limit(target) : 0;
  if (known && offset >= 0 && offset <= end && static_cast<std::uint64_t>(end - offset) >= bytes) return;
  throw RangeError(fmt::format("{} of {} bytes at offset {} of rank {}'s {} window is outside of its {} bytes", what,
                               bytes, offset, target, name_, end));
}

void Window::put(int target, std::int64_t offset, std::span<const std::byte> data) {
  require_inside(target, offset, data.size(), "put");
  offset += shifts_[static_cast<std::size_t>(target)];
  for (std::size_t at = 0; at < data.size(); at += kLargestTransfer) {
    const int count = static_cast<int>(std::min(kLargestTransfer, data.size() - at));
    FLUENTPS_MPI(MPI_Put(data.data() + at, count, MPI_BYTE, target, offset + static_cast<MPI_Aint>(at), count, MPI_BYTE,
                         window_));
  }
}

void Window::get(int target, std::int64_t offset, std::span<std::byte> into) {
  require_inside(target, offset, into.size(), "get");
  offset += shifts_[static_cast<std::size_t>(target)];
  for (std::size_t at = 0; at < into.size(); at += kLargestTransfer) {
    const int count = static_cast<int>(std::min(kLargestTransfer, into.size() - at));
    FLUENTPS_MPI(MPI_Get(into.data() + at, count, MPI_BYTE, target, offset + static_cast<MPI_Aint>(at), count, MPI_BYTE,
                         window_));
  }
}

void Window::flush(int target) { FLUENTPS_MPI(MPI_Win_flush(target, window_)); }

void Window::sync() {
#ifndef FLUENTPS_SIMULATED  // SimGrid 3.32 has no MPI_Win_sync; its ranks share one address space
  FLUENTPS_MPI(MPI_Win_sync(window_));
#endif
}

}  // namespace fluentps
