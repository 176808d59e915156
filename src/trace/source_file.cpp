/// Opens and checks what is to be read.
#include "trace/source_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace fluentps::trace {
namespace {

// Of reading metadata that a writer is just changing; HDF5 doubles its pause from 1 ns each time. Its own 100 attempts
// at metadata that is damaged for good would take longer than anybody lives.
constexpr unsigned kReadAttempts = 26;
constexpr std::uint64_t kLargestRatio = 1024;  // of compressed rows, by h5repack say; deflate ends there

bool is_hdf5(const std::string& path) { return H5Fis_hdf5(path.c_str()) > 0; }

}  // namespace

SourceFile::SourceFile(const std::string& path) : path_(path) {
  quiet_hdf5();
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw UsageError(fmt::format("trace file {} cannot be read: {}", path, std::strerror(errno)));
  if (!S_ISREG(status.st_mode))
    throw UsageError(fmt::format("{} is no file; give a trace file or the folder of a run", path));
  // SWMR reading suits all: a writer at work, one that was killed (its marks stay in the file), and closed files.
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "H5Pcreate", path);
  check_hdf5(H5Pset_metadata_read_attempts(access.get(), kReadAttempts), "H5Pset_metadata_read_attempts", path);
  file_ = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, access.get()), H5Fclose);
  if (file_) return;
  const auto reason = last_hdf5_reason();
  if (reason.code != 0 || !is_hdf5(path))
    throw UsageError(fmt::format("trace file {} cannot be read: {}", path,
                                 reason.code != 0 ? reason.text : "it is no HDF5 file, or its beginning is damaged"));
  throw UsageError(fmt::format("trace file {} cannot be read: its writer is still preparing it, or died doing so ({})",
                               path, reason.text));
}

std::uint64_t SourceFile::bytes() const {
  struct stat status {};
  return ::stat(path_.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

SourceTable::SourceTable(const SourceFile& file, hid_t group, const std::string& name, std::size_t row_bytes,
                         const std::vector<std::string>& fields)
    : path_(file.path()), name_(name) {
  dataset_ = Handle(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset_) refuse("it is missing or damaged");
  const Handle space(H5Dget_space(dataset_.get()), H5Sclose);
  hsize_t rows = 0;
  if (!space || H5Sget_simple_extent_ndims(space.get()) != 1 ||
      H5Sget_simple_extent_dims(space.get(), &rows, nullptr) != 1)
    refuse("it has not one dimension");
  rows_ = rows;
  check_type(row_bytes, fields);
  check_rows(file);
}

void SourceTable::check_type(std::size_t row_bytes, const std::vector<std::string>& fields) const {
  constexpr std::size_t kLargestRow = 4096;
  const Handle type(H5Dget_type(dataset_.get()), H5Tclose);
  if (!type || H5Tget_class(type.get()) != H5T_COMPOUND) refuse("its rows have no fields");
  if (H5Tget_size(type.get()) > kLargestRow || H5Tget_size(type.get()) * 4 < row_bytes)
    refuse("its rows have a strange size");
  for (const auto& field : fields) {
    const int index = H5Tget_member_index(type.get(), field.c_str());
    if (index < 0) refuse(fmt::format("the field {} is missing", field));
    const auto kind = H5Tget_member_class(type.get(), static_cast<unsigned>(index));
    if (kind != H5T_INTEGER && kind != H5T_FLOAT) refuse(fmt::format("the field {} is no number", field));
  }
}

/// Never allocates for rows that are not there.
void SourceTable::check_rows(const SourceFile& file) const {
  if (rows_ == 0) return;
  const Handle type(H5Dget_type(dataset_.get()), H5Tclose);
  const Handle creation(H5Dget_create_plist(dataset_.get()), H5Pclose);
  const bool filtered = H5Pget_nfilters(creation.get()) > 0;
  const std::uint64_t stored = std::min<std::uint64_t>(H5Dget_storage_size(dataset_.get()), file.bytes());
  const auto limit = (filtered ? stored * kLargestRatio : stored) / H5Tget_size(type.get());
  if (rows_ > limit) refuse(fmt::format("it claims {} rows where the file has room for {}", rows_, limit));
}

void SourceTable::read(std::uint64_t first, std::uint64_t count, hid_t type, std::byte* packed) const {
  const hsize_t start = first;
  const hsize_t length = count;
  const Handle on_disk(H5Dget_space(dataset_.get()), H5Sclose);
  const Handle in_memory(H5Screate_simple(1, &length, nullptr), H5Sclose);
  const bool read = on_disk && in_memory &&
                    H5Sselect_hyperslab(on_disk.get(), H5S_SELECT_SET, &start, nullptr, &length, nullptr) >= 0 &&
                    H5Dread(dataset_.get(), type, in_memory.get(), on_disk.get(), H5P_DEFAULT, packed) >= 0;
  if (!read) refuse(fmt::format("rows from {} on cannot be read ({})", first, last_hdf5_reason().text));
}

void SourceTable::refuse(const std::string& why) const {
  throw UsageError(fmt::format("table {} of trace file {}: {}; is it whole, and of this program?", name_, path_, why));
}

}  // namespace fluentps::trace
