/// Copies the ranks' tables, block by block, into one file.
#include "trace/merge.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "trace/new_file.hpp"
#include "trace/reader.hpp"
#include "trace/replace_file.hpp"
#include "trace/source_file.hpp"

namespace fluentps::trace {
namespace {

namespace fs = std::filesystem;

/// Attributes that differ between the ranks of a run; all others stand at the root, from the first rank.
constexpr std::array<std::string_view, 7> kRankAttributes = {"role", "rank", "role_index", "host",
                                                             "clock_offset_ns", "done", "environment"};
/// Attributes that are numbers in the rank files.
bool is_number(const std::string& name) { return name == "clock_offset_ns" || name == "done"; }

struct Target {
  hid_t group;
  const std::string& path;
  std::vector<std::string>& notes;
};

/// The rows of one table whose length is known only when it has been read: a live table grows, a crashed one may be cut.
template <typename Row>
void copy_table(const SourceFile& from, hid_t from_group, const Target& to) {
  const auto type = packed_type<Row>(to.path);
  std::vector<std::byte> packed;
  std::uint64_t cut = 0;
  const hsize_t none = 0;
  const hsize_t unlimited = H5S_UNLIMITED;
  const hsize_t chunk = Table<Row>::kChunkRows;
  const Handle space(H5Screate_simple(1, &none, &unlimited), H5Sclose, "H5Screate_simple", to.path);
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "H5Pcreate", to.path);
  check_hdf5(H5Pset_chunk(creation.get(), 1, &chunk), "H5Pset_chunk", to.path);
  const Handle dataset(H5Dcreate2(to.group, Table<Row>::kName, type.get(), space.get(), H5P_DEFAULT, creation.get(),
                                  H5P_DEFAULT),
                       H5Dclose, "H5Dcreate2", to.path);
  hsize_t written = 0;
  read_table<Row>(from, from_group, cut, [&](const std::vector<Row>& rows) {
    if (rows.empty()) return;
    packed.resize(rows.size() * packed_size<Row>());
    for (std::size_t i = 0; i < rows.size(); ++i) pack(rows[i], packed.data() + i * packed_size<Row>());
    const hsize_t count = rows.size();
    const hsize_t total = written + count;
    check_hdf5(H5Dset_extent(dataset.get(), &total), "H5Dset_extent", to.path);
    const Handle on_disk(H5Dget_space(dataset.get()), H5Sclose, "H5Dget_space", to.path);
    check_hdf5(H5Sselect_hyperslab(on_disk.get(), H5S_SELECT_SET, &written, nullptr, &count, nullptr),
               "H5Sselect_hyperslab", to.path);
    const Handle in_memory(H5Screate_simple(1, &count, nullptr), H5Sclose, "H5Screate_simple", to.path);
    check_hdf5(H5Dwrite(dataset.get(), type.get(), in_memory.get(), on_disk.get(), H5P_DEFAULT, packed.data()), "H5Dwrite",
               to.path);
    written = total;
  });
  if (cut > 0)
    to.notes.push_back(fmt::format("{}: the last {} rows of {} were never written and are left out", from.path(), cut,
                                   Table<Row>::kName));
}

void write_all(hid_t object, const Attributes& attributes, const std::string& path) {
  Attributes texts;
  for (const auto& [name, value] : attributes) {
    if (is_number(name))
      write_integer(object, name.c_str(), number_of(attributes, name), path);
    else
      texts.emplace_back(name, value);
  }
  write_attributes(object, texts, path);
}

/// Returns the rank's attributes.
Attributes copy_rank(const std::string& source, const Target& to) {
  const SourceFile from(source);
  const auto attributes = read_attributes(from.get(), source);
  const auto role = value_of(attributes, "role");
  if (role != "server" && role != "worker")
    throw UsageError(fmt::format("trace file {}: its role is '{}', neither server nor worker", source, role));
  write_all(to.group, attributes, to.path);
  if (role == "server") {
    copy_table<PushRow>(from, from.get(), to);
    copy_table<ServerPullRow>(from, from.get(), to);
    copy_table<AdvanceRow>(from, from.get(), to);
  } else {
    copy_table<IterationRow>(from, from.get(), to);
    copy_table<WorkerPullRow>(from, from.get(), to);
    copy_table<EvaluationRow>(from, from.get(), to);
  }
  return attributes;
}

void write_root(hid_t root, const std::vector<Attributes>& ranks, const std::string& path) {
  Attributes common;
  for (const auto& each : ranks.front())
    if (std::find(kRankAttributes.begin(), kRankAttributes.end(), each.first) == kRankAttributes.end()) common.push_back(each);
  write_attributes(root, common, path);
  const bool done = std::all_of(ranks.begin(), ranks.end(), [](const auto& each) { return number_of(each, "done") == 1; });
  write_integer(root, "done", done ? 1 : 0, path);
  write_integer(root, "ranks", static_cast<std::int64_t>(ranks.size()), path);
}

/// Writes all ranks to `temporary`; with `tolerant` it leaves out files that cannot be read.
void write_merged(const std::vector<std::string>& files, const std::string& temporary, bool tolerant, Recovery& merged) {
  const auto& path = merged.merged;
  NewFile file(temporary, path);
  std::vector<Attributes> ranks;
  for (const auto& source : files) {
    const auto name = fs::path(source).stem().string();
    Handle group(H5Gcreate2(file.get(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose, "H5Gcreate2", path);
    try {
      ranks.push_back(copy_rank(source, {.group = group.get(), .path = path, .notes = merged.notes}));
    } catch (const UsageError& error) {
      if (!tolerant) throw;
      merged.notes.push_back(fmt::format("left out: {}", error.what()));
      group.reset();
      check_hdf5(H5Ldelete(file.get(), name.c_str(), H5P_DEFAULT), "H5Ldelete", path);
    }
  }
  if (ranks.empty()) throw UsageError(merged.notes.front());
  write_root(file.get(), ranks, path);
  file.close();
}

Recovery merge_files(const std::string& run_dir, bool tolerant) {
  quiet_hdf5();
  const auto files = rank_files(run_dir);
  if (files.empty()) throw UsageError(fmt::format("the folder {} holds no rank-*.h5 to merge", run_dir));
  Recovery merged{.merged = (fs::path(run_dir) / "run.h5").string(), .notes = {}};
  replace_file(merged.merged,
               [&](const std::string& temporary) { write_merged(files, temporary, tolerant, merged); });
  return merged;
}

/// HDF5's own h5clear does the same: the property lets an open for writing pass over, and then clear, the marks.
bool clear_marks(const std::string& path) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "H5Pcreate", path);
  const hbool_t clear = 1;
  check_hdf5(H5Pset(access.get(), "clear_status_flags", &clear), "H5Pset", path);
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), H5Fclose, "H5Fopen", path);
  return file.reset() >= 0;
}

bool is_marked(const std::string& path) {
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  return !file;
}

/// The living writer of a file holds a shared lock on it (rank_file.cpp).
bool in_use(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool used = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return used;
}

}  // namespace

std::string merge(const std::string& run_dir) { return merge_files(run_dir, false).merged; }

Recovery recover(const std::string& run_dir) {
  auto recovery = merge_files(run_dir, true);
  for (const auto& path : rank_files(run_dir)) {
    try {
      const SourceFile readable(path);
    } catch (const UsageError&) {
      continue;  // noted by the merge
    }
    if (in_use(path)) {
      recovery.notes.push_back(fmt::format("{}: its writer is at work; read, not touched", path));
    } else if (is_marked(path)) {
      clear_marks(path);
      recovery.notes.push_back(fmt::format("{}: marks of the killed writer cleared", path));
    }
  }
  return recovery;
}

}  // namespace fluentps::trace
