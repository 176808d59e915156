/// Creates, flushes, closes.
#include "trace/new_file.hpp"

namespace fluentps::trace {

NewFile::NewFile(const std::string& path, const std::string& shown) : shown_(shown) {
  quiet_hdf5();
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "H5Pcreate", shown);
  check_hdf5(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST), "H5Pset_libver_bounds", shown);
  file_ = Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose, "H5Fcreate", shown);
}

NewFile::~NewFile() {
  if (file_) abandon_writes(file_.get());
}

void NewFile::close() {
  check_hdf5(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "H5Fflush", shown_);
  check_hdf5(file_.reset(), "H5Fclose", shown_);
}

}  // namespace fluentps::trace
