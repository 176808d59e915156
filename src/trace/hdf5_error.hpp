/// Failing HDF5 calls as exceptions, with the reason the library itself would only print.
#pragma once

#include <hdf5.h>

#include <string>

#include "fluentps/error.hpp"

namespace fluentps::trace {

/// A failed HDF5 call. The text is one sentence that names the path; a locked file also names HDF5_USE_FILE_LOCKING.
class Hdf5Error : public RunError {
 public:
  Hdf5Error(const std::string& text, int code, std::string call, std::string path)
      : RunError(text), code_(code), call_(std::move(call)), path_(std::move(path)) {}
  int code() const { return code_; }  ///< errno of the operating system, 0 where HDF5 failed on its own
  const std::string& call() const { return call_; }
  const std::string& path() const { return path_; }

 private:
  int code_;
  std::string call_;
  std::string path_;
};

/// Why the last HDF5 call failed: what the operating system said, else the innermost entry of HDF5's error stack.
struct Hdf5Reason {
  int code = 0;
  std::string text;
};
Hdf5Reason last_hdf5_reason();

/// Throws Hdf5Error for the call that has just failed.
[[noreturn]] void throw_hdf5_error(const char* call, const std::string& path);

/// Passes on what an HDF5 call returned; throws Hdf5Error where it is negative.
template <typename Result>
Result check_hdf5(Result result, const char* call, const std::string& path) {
  if (result < 0) throw_hdf5_error(call, path);
  return result;
}

/// For a file on which a write has failed, before it is closed. HDF5 keeps what it could not write and tries again when
/// it closes, metadata too, and does not get the file closed then. This turns its descriptor to memory, so that the
/// file on disk stays as it is and closing succeeds.
void abandon_writes(hid_t file);

/// Ends HDF5's own printing of error stacks, for this process. Every entry of the room calls it.
void quiet_hdf5();

}  // namespace fluentps::trace
