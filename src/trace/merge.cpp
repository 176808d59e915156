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
constexpr std::array<std::string_view, 7> kRankAttributes = {
    "role", "rank", "role_index", "host", "clock_offset_ns", "done", "environment"};
/// Attributes that are numbers in the rank files.
bool is_number(const std::string& name) { return name == "clock_offset_ns" || name == "done"; }

struct Target {
  hid_t group;
  const std::string& path;
  std::vector<std::string>& notes;
};

/// Appends rows to a new dataset; how many there are is known at the end only: a live table grows, a crashed one is
/// cut.
template <typename Row>
class RowWriter {
 public:
  RowWriter(const Target& to, std::uint64_t most_rows) : to_(to), type_(packed_type<Row>(to.path)) {
    const hsize_t none = 0;
    const hsize_t unlimited = H5S_UNLIMITED;
    const hsize_t chunk = std::clamp<std::uint64_t>(most_rows, 1, Table<Row>::kChunkRows);
    const Handle space(H5Screate_simple(1, &none, &unlimited), H5Sclose, "H5Screate_simple", to.path);
    const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "H5Pcreate", to.path);
    check_hdf5(H5Pset_chunk(creation.get(), 1, &chunk), "H5Pset_chunk", to.path);
    dataset_ = Handle(
        H5Dcreate2(to.group, Table<Row>::kName, type_.get(), space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
        H5Dclose, "H5Dcreate2", to.path);
  }
  void append(const std::vector<Row>& rows) {
    if (rows.empty()) return;
    packed_.resize(rows.size() * packed_size<Row>());
    for (std::size_t i = 0; i < rows.size(); ++i) pack(rows[i], packed_.data() + i * packed_size<Row>());
    const hsize_t count = rows.size();
    const hsize_t total = written_ + count;
    check_hdf5(H5Dset_extent(dataset_.get(), &total), "H5Dset_extent", to_.path);
    const Handle on_disk(H5Dget_space(dataset_.get()), H5Sclose, "H5Dget_space", to_.path);
    check_hdf5(H5Sselect_hyperslab(on_disk.get(), H5S_SELECT_SET, &written_, nullptr, &count, nullptr),
               "H5Sselect_hyperslab", to_.path);
    const Handle in_memory(H5Screate_simple(1, &count, nullptr), H5Sclose, "H5Screate_simple", to_.path);
    check_hdf5(H5Dwrite(dataset_.get(), type_.get(), in_memory.get(), on_disk.get(), H5P_DEFAULT, packed_.data()),
               "H5Dwrite", to_.path);
    written_ = total;
  }

 private:
  Target to_;
  Handle type_;
  Handle dataset_;
  std::vector<std::byte> packed_;
  hsize_t written_ = 0;
};

template <typename Row>
void copy_table(const SourceFile& from, const Target& to) {
  const TableReader<Row> reader(from, from.get());
  RowWriter<Row> writer(to, reader.rows());
  const auto cut = reader.read([&](const std::vector<Row>& rows) { writer.append(rows); });
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
    copy_table<PushRow>(from, to);
    copy_table<ServerPullRow>(from, to);
    copy_table<AdvanceRow>(from, to);
  } else {
    copy_table<IterationRow>(from, to);
    copy_table<WorkerPullRow>(from, to);
    copy_table<EvaluationRow>(from, to);
  }
  return attributes;
}

void write_root(hid_t root, const std::vector<Attributes>& ranks, const std::string& path) {
  Attributes common;
  for (const auto& each : ranks.front())
    if (std::find(kRankAttributes.begin(), kRankAttributes.end(), each.first) == kRankAttributes.end())
      common.push_back(each);
  write_attributes(root, common, path);
  const bool done =
      std::all_of(ranks.begin(), ranks.end(), [](const auto& each) { return number_of(each, "done") == 1; });
  write_integer(root, "done", done ? 1 : 0, path);
  write_integer(root, "ranks", static_cast<std::int64_t>(ranks.size()), path);
}

/// Writes all ranks to `temporary`; with `tolerant` it leaves out files that cannot be read.
void write_merged(const std::vector<std::string>& files, const std::string& temporary, bool tolerant,
                  Recovery& merged) {
  const auto& path = merged.merged;
  NewFile file(temporary, path);
  std::vector<Attributes> ranks;
  for (const auto& source : files) {
    const auto name = fs::path(source).stem().string();
    Handle group(H5Gcreate2(file.get(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose, "H5Gcreate2",
                 path);
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
  replace_file(merged.merged, [&](const std::string& temporary) { write_merged(files, temporary, tolerant, merged); });
  return merged;
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
  for (const auto& path : rank_files(run_dir))
    if (in_use(path)) recovery.notes.push_back(fmt::format("{}: its writer is still at work", path));
  return recovery;
}

}  // namespace fluentps::trace
