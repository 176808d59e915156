/// Tables in SWMR mode. What the order of the calls is for stands in docs/trace-format.md, "Crash safety".
#include "trace/rank_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "trace/attributes.hpp"

namespace fluentps::trace {
namespace {

constexpr unsigned kCompactAttributes = 65535;  // all of them stay in the object header, which SWMR protects
constexpr hsize_t kPage_bytes = 4096;
constexpr const char* kDone = "done";

Handle property_list(hid_t kind, const std::string& path) { return {H5Pcreate(kind), H5Pclose, "H5Pcreate", path}; }

Handle create_file(const std::string& path) {
  const auto access = property_list(H5P_FILE_ACCESS, path);
  check_hdf5(H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), "H5Pset_libver_bounds", path);
  // No chunk cache: H5Dwrite itself writes, so data is on disk, or has failed, before any metadata tells of it. Set for
  // the file, since H5Fstart_swmr_write of HDF5 1.10.8 forgets what the datasets' own access lists say.
  check_hdf5(H5Pset_cache(access.get(), 0, 1, 0, 1.0), "H5Pset_cache", path);
  const auto creation = property_list(H5P_FILE_CREATE, path);
  check_hdf5(H5Pset_attr_phase_change(creation.get(), kCompactAttributes, 0), "H5Pset_attr_phase_change", path);
  // Metadata is overwritten in place, and a SIGKILL can end a write between two pages of memory: no piece of metadata
  // may cross a page, or a torn one takes its whole table along (seen with HDF5 1.10.8, once in about 800 kills).
  check_hdf5(H5Pset_file_space_strategy(creation.get(), H5F_FSPACE_STRATEGY_PAGE, 0, 1), "H5Pset_file_space_strategy",
             path);
  check_hdf5(H5Pset_file_space_page_size(creation.get(), kPage_bytes), "H5Pset_file_space_page_size", path);
  return {H5Fcreate(path.c_str(), H5F_ACC_EXCL, creation.get(), access.get()), H5Fclose, "H5Fcreate", path};
}

/// The mark is eight bytes of data of its own, not an attribute: setting it overwrites no metadata.
void create_done_mark(hid_t root, const std::string& path) {
  const std::int64_t open = 0;
  const Handle scalar(H5Screate(H5S_SCALAR), H5Sclose, "H5Screate", path);
  const auto creation = property_list(H5P_DATASET_CREATE, path);
  check_hdf5(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time", path);
  const Handle mark(H5Dcreate2(root, kDone, H5T_NATIVE_INT64, scalar.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                    H5Dclose, "H5Dcreate2", path);
  check_hdf5(H5Dwrite(mark.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &open), "H5Dwrite", path);
}

void set_done_mark(hid_t file, const std::string& path) {
  const std::int64_t done = 1;
  const Handle mark(H5Dopen2(file, kDone, H5P_DEFAULT), H5Dclose, "H5Dopen2", path);
  check_hdf5(H5Dwrite(mark.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &done), "H5Dwrite", path);
}

}  // namespace

TableBuffer::TableBuffer(std::string name, Handle type, std::size_t row_bytes, std::size_t chunk_rows)
    : name_(std::move(name)),
      type_(std::move(type)),
      row_bytes_(row_bytes),
      chunk_rows_(chunk_rows),
      buffer_(row_bytes * chunk_rows),
      next_(buffer_.data()),
      end_(buffer_.data() + buffer_.size()) {}

void TableBuffer::create(hid_t file, const std::string& path) {
  const hsize_t none = 0;
  const hsize_t unlimited = H5S_UNLIMITED;
  const hsize_t chunk = chunk_rows_;
  const Handle space(H5Screate_simple(1, &none, &unlimited), H5Sclose, "H5Screate_simple", path);
  const auto creation = property_list(H5P_DATASET_CREATE, path);
  check_hdf5(H5Pset_chunk(creation.get(), 1, &chunk), "H5Pset_chunk", path);
  const std::vector<unsigned char> unwritten(row_bytes_, kUnwrittenByte);
  check_hdf5(H5Pset_fill_value(creation.get(), type_.get(), unwritten.data()), "H5Pset_fill_value", path);
  dataset_ = Handle(H5Dcreate2(file, name_.c_str(), type_.get(), space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                    H5Dclose, "H5Dcreate2", path);
}

void TableBuffer::write(const std::string& path) {
  const hsize_t count = static_cast<std::size_t>(next_ - buffer_.data()) / row_bytes_;
  if (count == 0) return;
  const hsize_t start = written_;
  const hsize_t rows = written_ + count;
  check_hdf5(H5Dset_extent(dataset_.get(), &rows), "H5Dset_extent", path);
  const Handle on_disk(H5Dget_space(dataset_.get()), H5Sclose, "H5Dget_space", path);
  check_hdf5(H5Sselect_hyperslab(on_disk.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr),
             "H5Sselect_hyperslab", path);
  const Handle in_memory(H5Screate_simple(1, &count, nullptr), H5Sclose, "H5Screate_simple", path);
  check_hdf5(H5Dwrite(dataset_.get(), type_.get(), in_memory.get(), on_disk.get(), H5P_DEFAULT, buffer_.data()),
             "H5Dwrite", path);
  written_ = rows;
  next_ = buffer_.data();
  end_ = next_ + (chunk_rows_ - written_ % chunk_rows_) * row_bytes_;
}

void TableBuffer::close() {
  dataset_.reset();
  type_.reset();
  next_ = end_ = buffer_.data();
}

RankFile::RankFile(const WriterOptions& options, std::vector<TableBuffer> tables)
    : path_(options.path), flush_ns_(options.flush_ns), tables_(std::move(tables)) {
  quiet_hdf5();
  file_ = create_file(path_);
  create_tables(options);
  check_hdf5(H5Fstart_swmr_write(file_.get()), "H5Fstart_swmr_write", path_);
  hold_lock();
}

RankFile::~RankFile() {
  if (!file_) return;
  try {
    flush();
    close_handles();
  } catch (const std::exception& error) {
    fmt::print(stderr, "warning: {}\n", error.what());
    abandon();
  }
}

void RankFile::create_tables(const WriterOptions& options) {
  const Handle root(H5Gopen2(file_.get(), "/", H5P_DEFAULT), H5Gclose, "H5Gopen2", path_);
  Attributes all{{"run_id", std::filesystem::path(path_).parent_path().filename().string()}};
  all.insert(all.end(), options.attributes.begin(), options.attributes.end());
  write_attributes(root.get(), all, path_);
  write_integer(root.get(), "clock_offset_ns", options.clock_offset_ns, path_);
  create_done_mark(root.get(), path_);
  for (auto& each : tables_) each.create(root.get(), path_);
}

/// HDF5 gives its own lock up in SWMR mode. This one lets readers in and keeps whoever would repair the file out; the
/// kernel drops it when the process dies. Where the file system has no locks there is none.
void RankFile::hold_lock() {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (lock_ >= 0) ::flock(lock_, LOCK_SH | LOCK_NB);
}

bool RankFile::dirty() const {
  return std::any_of(tables_.begin(), tables_.end(), [](const TableBuffer& each) { return !each.empty(); });
}

void RankFile::maybe_flush(std::int64_t now_ns) {
  if (oldest_ns_ == kNone && dirty()) oldest_ns_ = last_look_ns_;
  if (oldest_ns_ != kNone && now_ns - oldest_ns_ >= flush_ns_) flush();
  last_look_ns_ = now_ns;
}

/// A full chunk brings everything to the file: dirty metadata then never waits in HDF5's cache, which could evict it in
/// any order, and the tables of a killed rank end at the same moment.
void RankFile::make_room() {
  if (!file_) throw std::logic_error("row added to the closed trace " + path_);
  flush();
}

void RankFile::flush() {
  if (!file_) return;
  try {
    for (auto& each : tables_) each.write(path_);
    check_hdf5(H5Fflush(file_.get(), H5F_SCOPE_LOCAL), "H5Fflush", path_);
  } catch (const Hdf5Error&) {
    abandon();
    throw;
  }
  oldest_ns_ = kNone;
}

void RankFile::close() {
  if (!file_) return;
  flush();
  try {
    set_done_mark(file_.get(), path_);
    close_handles();
  } catch (const Hdf5Error&) {
    abandon();
    throw;
  }
}

void RankFile::abandon() {
  if (!file_) return;
  abandon_writes(file_.get());
  for (auto& each : tables_) each.close();
  file_.reset();
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
}

void RankFile::close_handles() {
  for (auto& each : tables_) each.close();
  check_hdf5(file_.reset(), "H5Fclose", path_);
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
}

}  // namespace fluentps::trace
