/// Loads runs.
#include "trace/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "trace/provenance.hpp"
#include "trace/source_file.hpp"

namespace fluentps::trace {
namespace {

namespace fs = std::filesystem;

template <typename Row>
void load_table(const SourceFile& file, hid_t group, const std::string& rank, std::vector<Row>& rows,
                std::vector<std::string>& notes) {
  const TableReader<Row> reader(file, group);
  rows.reserve(static_cast<std::size_t>(reader.rows()));
  const auto cut =
      reader.read([&](const std::vector<Row>& block) { rows.insert(rows.end(), block.begin(), block.end()); });
  if (cut > 0)
    notes.push_back(
        fmt::format("{}: the last {} rows of {} were never written and are left out", rank, cut, Table<Row>::kName));
}

void check_schema(const Attributes& attributes, const std::string& path) {
  const auto schema = value_of(attributes, "schema");
  if (schema != kSchema)
    throw UsageError(fmt::format("{} has the schema '{}' where this program reads '{}'; is it a trace of fluentps?",
                                 path, schema, kSchema));
}

RankData load_rank(const SourceFile& file, hid_t group, std::string name, std::vector<std::string>& notes) {
  RankData data;
  data.name = std::move(name);
  data.attributes = read_attributes(group, file.path());
  check_schema(data.attributes, file.path());
  const auto role = value_of(data.attributes, "role");
  if (role != "server" && role != "worker")
    throw UsageError(
        fmt::format("trace file {}: the role of {} is '{}', neither server nor worker", file.path(), data.name, role));
  data.server = role == "server";
  data.rank = static_cast<int>(number_of(data.attributes, "rank"));
  data.index = static_cast<std::uint32_t>(number_of(data.attributes, "role_index"));
  data.done = number_of(data.attributes, "done") == 1;
  if (data.server) {
    load_table(file, group, data.name, data.pushes, notes);
    load_table(file, group, data.name, data.server_pulls, notes);
    load_table(file, group, data.name, data.advances, notes);
  } else {
    load_table(file, group, data.name, data.iterations, notes);
    load_table(file, group, data.name, data.worker_pulls, notes);
    load_table(file, group, data.name, data.evaluations, notes);
  }
  return data;
}

std::vector<std::string> rank_groups(const SourceFile& file) {
  std::vector<std::string> names;
  const auto visit = [](hid_t, const char* name, const H5L_info_t* link, void* data) -> herr_t {
    if (link->type == H5L_TYPE_HARD && std::string_view(name).starts_with("rank-"))
      static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  hsize_t index = 0;
  H5Literate(file.get(), H5_INDEX_NAME, H5_ITER_INC, &index, visit, &names);
  return names;
}

RunData load_merged(const std::string& path) {
  const SourceFile file(path);
  RunData run;
  run.path = path;
  run.attributes = read_attributes(file.get(), path);
  check_schema(run.attributes, path);
  const auto groups = rank_groups(file);
  if (groups.empty()) {  // a single rank's file
    run.ranks.push_back(load_rank(file, file.get(), fs::path(path).stem().string(), run.notes));
    return run;
  }
  for (const auto& name : groups) {
    const Handle group(H5Gopen2(file.get(), name.c_str(), H5P_DEFAULT), H5Gclose);
    if (!group) throw UsageError(fmt::format("trace file {}: the group {} is damaged", path, name));
    run.ranks.push_back(load_rank(file, group.get(), name, run.notes));
  }
  return run;
}

RunData load_folder(const std::string& dir, bool tolerant) {
  RunData run;
  run.path = dir;
  const auto files = rank_files(dir);
  if (files.empty()) throw UsageError(fmt::format("the folder {} holds no trace: neither run.h5 nor rank-*.h5", dir));
  for (const auto& path : files) {
    try {
      const SourceFile file(path);
      run.ranks.push_back(load_rank(file, file.get(), fs::path(path).stem().string(), run.notes));
    } catch (const UsageError& error) {
      if (!tolerant) throw;
      run.notes.push_back(fmt::format("left out: {}", error.what()));
    }
  }
  if (run.ranks.empty()) throw UsageError(run.notes.front());
  run.attributes = run.ranks.front().attributes;
  return run;
}

/// run.h5 speaks for the run unless a rank has written since.
bool merged_is_current(const fs::path& merged, const std::vector<std::string>& files) {
  std::error_code error;
  const auto time = fs::last_write_time(merged, error);
  if (error) return false;
  return std::none_of(files.begin(), files.end(),
                      [&](const auto& file) { return fs::last_write_time(file, error) > time; });
}

void sort_ranks(RunData& run) {
  std::stable_sort(run.ranks.begin(), run.ranks.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
}

std::vector<const RankData*> of_role(const RunData& run, bool server) {
  std::vector<const RankData*> found;
  for (const auto& each : run.ranks)
    if (each.server == server) found.push_back(&each);
  std::stable_sort(found.begin(), found.end(), [](auto* a, auto* b) { return a->index < b->index; });
  return found;
}

}  // namespace

std::vector<const RankData*> RunData::servers() const { return of_role(*this, true); }
std::vector<const RankData*> RunData::workers() const { return of_role(*this, false); }

std::vector<std::string> rank_files(const std::string& dir) {
  std::error_code error;
  std::vector<std::string> files;
  for (fs::directory_iterator each(dir, error), end; !error && each != end; each.increment(error)) {
    const auto name = each->path().filename().string();
    if (name.starts_with("rank-") && name.ends_with(".h5")) files.push_back(each->path().string());
  }
  if (error) throw UsageError(fmt::format("the run {} cannot be read: {}", dir, error.message()));
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::pair(a.size(), std::cref(a).get()) < std::pair(b.size(), std::cref(b).get());
  });
  return files;
}

RunData load_run(const std::string& path, bool tolerant) {
  std::error_code error;
  RunData run;
  if (fs::is_directory(path, error)) {
    const auto merged = fs::path(path) / "run.h5";
    run = merged_is_current(merged, rank_files(path)) ? load_merged(merged.string()) : load_folder(path, tolerant);
  } else {
    run = load_merged(path);
  }
  sort_ranks(run);
  return run;
}

}  // namespace fluentps::trace
