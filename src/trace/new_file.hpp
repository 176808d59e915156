/// A new HDF5 file that is given up cleanly where writing it fails.
#pragma once

#include <string>

#include "trace/handle.hpp"

namespace fluentps::trace {

class NewFile {
 public:
  /// Replaces what is at `path`. Throws Hdf5Error, which names `shown`.
  NewFile(const std::string& path, const std::string& shown);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  hid_t get() const { return file_.get(); }
  /// Everything is with the operating system afterwards. All objects in the file must be closed. Throws Hdf5Error.
  void close();

 private:
  std::string shown_;
  Handle file_;
};

}  // namespace fluentps::trace
