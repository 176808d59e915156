#include "ps/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "fluentps/error.hpp"
#include "net/agree.hpp"
#include "net/mpi_error.hpp"

namespace fluentps {
namespace {

namespace fs = std::filesystem;

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw RunError(fmt::format("{} cannot be made: {}", folder, error.message()));
}

std::set<std::string> names_of(const State& state) {
  std::set<std::string> names;
  for (const auto& [name, values] : state.arrays) names.insert(name);
  return names;
}

std::string list(const std::set<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

void require_names(const std::set<std::string>& stored, const std::set<std::string>& wanted, const std::string& where) {
  if (stored == wanted) return;
  std::set<std::string> missing;
  std::set<std::string> spare;
  std::set_difference(wanted.begin(), wanted.end(), stored.begin(), stored.end(),
                      std::inserter(missing, missing.end()));
  std::set_difference(stored.begin(), stored.end(), wanted.begin(), wanted.end(), std::inserter(spare, spare.end()));
  throw UsageError(
      fmt::format("the state in {} does not fit this run (missing: {}; of no use: {}); resume with the same model, "
                  "--optimizer and --optimizer-at",
                  where, list(missing), list(spare)));
}

void fill_numbers(const trace::LoadedState& loaded, const State& into, const std::string& path) {
  for (const auto& [name, value] : into.numbers) {
    const auto found = loaded.numbers.find(name);
    if (found == loaded.numbers.end())
      throw UsageError(fmt::format("{} has no number {}; resume with the same --optimizer", path, name));
    *value = found->second;
  }
}

/// A piece that lies in a shard of then and in one of now, at these elements of them.
struct Overlap {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t count = 0;
};

std::vector<Overlap> overlaps(const std::vector<Slice>& then, const std::vector<Slice>& now) {
  std::vector<Overlap> found;
  for (const auto& old : then)
    for (const auto& own : now) {
      const auto first = std::max(old.offset, own.offset);
      const auto last = std::min(old.offset + old.count, own.offset + own.count);
      if (first < last)
        found.push_back({old.shard_offset + first - old.offset, own.shard_offset + first - own.offset, last - first});
    }
  return found;
}

void copy_arrays(const trace::LoadedState& loaded, const std::vector<Overlap>& pieces, const State& into,
                 const std::string& path) {
  for (const auto& [name, values] : into.arrays) {
    const auto& stored = loaded.arrays.at(name);
    for (const auto& piece : pieces) {
      if (piece.from + piece.count > static_cast<std::int64_t>(stored.size()))
        throw UsageError(fmt::format("{}: {} has {} elements; the shard map wants more", path, name, stored.size()));
      std::copy_n(stored.begin() + piece.from, piece.count, values.begin() + piece.to);
    }
  }
}

}  // namespace

trace::WrittenFile write_part(const std::string& root, Iteration iteration, const std::string& file,
                              const State& state) {
  const auto folder = checkpoint_folder(root, iteration);
  make_folder(folder);
  return trace::save_state(folder + "/" + file, state);
}

void read_shard(const Manifest& manifest, const ShardMap& map, ServerIndex server, const State& into) {
  const ShardMap then(manifest.tensors, manifest.servers, parse_slicing(manifest.slicing));
  for (std::uint32_t m = 0; m < manifest.servers; ++m) {
    const auto pieces = overlaps(then.slices(ServerIndex{m}), map.slices(server));
    if (pieces.empty() && m > 0) continue;  // server 0's file has the numbers, which are the same everywhere
    const auto path = manifest.folder + "/" + server_file(m);
    const auto loaded = trace::load_state(path);
    std::set<std::string> stored;
    for (const auto& [name, values] : loaded.arrays) stored.insert(name);
    require_names(stored, names_of(into), path);
    if (m == 0) fill_numbers(loaded, into, path);
    copy_arrays(loaded, pieces, into, path);
  }
}

void read_worker(const Manifest& manifest, std::uint32_t index, const State& into) {
  const auto path = manifest.folder + "/" + worker_file(index % manifest.workers);
  const auto loaded = trace::load_state(path);
  fill_numbers(loaded, into, path);
  for (const auto& [name, values] : into.arrays) {
    const auto found = loaded.arrays.find(name);
    if (found == loaded.arrays.end() || found->second.size() != values.size())
      throw UsageError(fmt::format("{} does not hold {} elements of {}; resume with the same model and optimizer", path,
                                   values.size(), name));
    std::copy(found->second.begin(), found->second.end(), values.begin());
  }
}

void check_worker_state(const Manifest& manifest, const State& own, std::uint32_t workers) {
  require_names({manifest.worker_state.begin(), manifest.worker_state.end()}, names_of(own), manifest.folder);
  if (workers == manifest.workers) return;
  for (const auto& [name, values] : own.arrays)
    if (!name.starts_with("local/"))
      throw UsageError(
          fmt::format("{} is of {} workers, each with its own {}, and this run has {}; resume with {} workers (an "
                      "optimizer without state, or on the server, allows any number)",
                      manifest.folder, manifest.workers, name, workers, manifest.workers));
}

Manifest open_checkpoint(const Roles& roles, const std::string& path, const std::vector<TensorSpec>& tensors,
                         std::uint64_t seed) {
  const auto job = roles.job.get();
  std::string folder;
  agree(job, [&] {
    if (roles.job.rank() == 0) folder = find_checkpoint(path).folder;
  });
  folder = broadcast(job, folder, 0);
  Manifest manifest;
  agree(job, [&] {
    manifest = find_checkpoint(folder);
    const auto ranks = static_cast<std::size_t>(roles.job.size());
    for (auto k = static_cast<std::size_t>(roles.job.rank()); k < manifest.files.size(); k += ranks)
      check_file(manifest, manifest.files[k]);
  });
  agree(job, [&] {
    if (manifest.tensors != tensors)
      throw UsageError(
          fmt::format("{} is of another model: it has {} tensors, or other shapes, where this run has {}; resume "
                      "with the same --model and --dataset",
                      manifest.folder, manifest.tensors.size(), tensors.size()));
    if (manifest.seed != seed)
      throw UsageError(fmt::format(
          "{} was made with --seed {}, so with other data to come than --seed {} gives; resume with --seed {}",
          manifest.folder, manifest.seed, seed, manifest.seed));
  });
  return manifest;
}

CheckpointWriter::CheckpointWriter(const std::string& root, Iteration iteration, const Roles& roles)
    : root_(root), iteration_(iteration), roles_(roles) {
  std::array<Iteration, 2> ends = {iteration, -iteration};
  FLUENTPS_MPI(MPI_Allreduce(MPI_IN_PLACE, ends.data(), 2, MPI_INT64_T, MPI_MAX, roles.workers.get()));
  if (ends[0] != -ends[1])
    throw RunError(
        fmt::format("a checkpoint needs all workers at one iteration; they are at {} to {}", -ends[1], ends[0]));
  agree(roles.workers.get(), [&] {
    if (roles.index != 0) return;
    make_folder(checkpoint_folder(root, iteration));
    // A checkpoint that is there already is none while its files are replaced.
    std::error_code error;
    fs::remove(checkpoint_folder(root, iteration) + "/manifest.json", error);
  });
}

void CheckpointWriter::write_workers(const State& own) {
  const auto comm = roles_.workers.get();
  trace::WrittenFile written;
  agree(comm, [&] { written = write_part(root_, iteration_, worker_file(roles_.index), own); });
  for (const auto& [name, values] : own.arrays) names_.push_back(name);
  workers_.resize(roles_.worker_count());
  FLUENTPS_MPI(MPI_Gather(&written, sizeof(written), MPI_BYTE, workers_.data(), sizeof(written), MPI_BYTE, 0, comm));
}

std::string CheckpointWriter::finish(Manifest manifest, std::uint32_t keep) {
  manifest.folder = checkpoint_folder(root_, iteration_);
  agree(roles_.workers.get(), [&] {
    if (roles_.index != 0) return;
    manifest.iteration = iteration_;
    manifest.servers = roles_.server_count();
    manifest.workers = roles_.worker_count();
    manifest.worker_state = names_;
    for (std::uint32_t m = 0; m < servers_.size(); ++m) manifest.files.push_back({server_file(m), servers_[m]});
    for (std::uint32_t w = 0; w < workers_.size(); ++w) manifest.files.push_back({worker_file(w), workers_[w]});
    write_manifest(manifest);
    remove_old(root_, keep);
  });
  return manifest.folder;
}

}  // namespace fluentps
