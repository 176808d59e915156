/// Reads HDF5's error stack.
#include "trace/hdf5_error.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace fluentps::trace {
namespace {

constexpr std::size_t kReadOnClosing_bytes = 1U << 20;  // HDF5 reads object headers when it closes; they come first

/// HDF5 keeps the operating system's errno only inside its texts: "..., errno = 28, error message = 'No space ...'".
herr_t visit(unsigned, const H5E_error2_t* entry, void* data) {
  auto& reason = *static_cast<Hdf5Reason*>(data);
  const std::string text = entry->desc == nullptr ? "" : entry->desc;
  constexpr const char* kMark = "errno = ";
  const auto at = text.find(kMark);
  if (at != std::string::npos && reason.code == 0) {
    reason.code = std::atoi(text.c_str() + at + std::strlen(kMark));
    if (reason.code != 0) reason.text = std::strerror(reason.code);
  }
  if (reason.text.empty()) reason.text = text;
  return 0;
}

}  // namespace

Hdf5Reason last_hdf5_reason() {
  Hdf5Reason reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, visit, &reason);
  if (reason.text.empty()) reason.text = "HDF5 gives no reason";
  return reason;
}

void throw_hdf5_error(const char* call, const std::string& path) {
  const auto reason = last_hdf5_reason();
  const bool locked = reason.text.find("lock") != std::string::npos || reason.code == EAGAIN || reason.code == ENOLCK ||
                      reason.code == ENOSYS;
  const char* advice = "";
  if (locked) {
    advice =
        "; another program has it open, or the file system has no locks: then set HDF5_USE_FILE_LOCKING=FALSE in the "
        "environment";
  } else if (reason.code == ENOSPC || reason.code == EDQUOT) {
    advice = "; free some space or choose another directory with --out";
  } else if (reason.code == EACCES || reason.code == EROFS || reason.code == EPERM) {
    advice = "; choose a directory you may write to with --out";
  }
  throw Hdf5Error(fmt::format("trace file {}: {} ({}){}", path, reason.text, call, advice), reason.code, call, path);
}

void abandon_writes(hid_t file) {
  void* place = nullptr;
  const int memory = ::memfd_create("fluentps-trace", MFD_CLOEXEC);
  if (memory < 0) return;
  if (H5Fget_vfd_handle(file, H5P_DEFAULT, &place) >= 0 && place != nullptr) {
    const int descriptor = *static_cast<int*>(place);
    std::vector<char> beginning(kReadOnClosing_bytes);
    const auto bytes = ::pread(descriptor, beginning.data(), beginning.size(), 0);
    if (bytes > 0 && ::pwrite(memory, beginning.data(), static_cast<std::size_t>(bytes), 0) == bytes)
      ::dup2(memory, descriptor);
  }
  ::close(memory);
}

void quiet_hdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

}  // namespace fluentps::trace
