/// Writing and reading checkpoints (docs/checkpoints.md). The manifest has its own file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fluentps/state.hpp"
#include "fluentps/types.hpp"
#include "net/roles.hpp"
#include "ps/manifest.hpp"
#include "shard/shard_map.hpp"
#include "trace/checkpoint_file.hpp"

namespace fluentps {

/// One rank's file of a checkpoint; makes the folder where needed. Throws RunError.
trace::WrittenFile write_part(const std::string& root, Iteration iteration, const std::string& file,
                              const State& state);

/// Fills `into`, the state of a server of `map`, from the files of however many servers there were. Throws UsageError
/// where its names are others.
void read_shard(const Manifest& manifest, const ShardMap& map, ServerIndex server, const State& into);
/// Fills the state of a worker. Throws UsageError where names or lengths are others.
void read_worker(const Manifest& manifest, std::uint32_t index, const State& into);

/// Throws UsageError where a worker's own state cannot be taken over: other names, or another number of workers with
/// state that belongs to one worker (names outside of local/).
void check_worker_state(const Manifest& manifest, const State& own, std::uint32_t workers);

/// Collective over roles.job: finds the checkpoint, checks its files, each by one rank, and that it is of these tensors
/// and this seed. Throws UsageError on all ranks alike.
Manifest open_checkpoint(const Roles& roles, const std::string& path, const std::vector<TensorSpec>& tensors,
                         std::uint64_t seed);

/// The workers' side of writing one, collective over their communicator: every worker makes one, calls write_workers
/// and finish; worker 0 calls add_servers in between. Throws RunError on all of them.
class CheckpointWriter {
 public:
  /// Waits for all workers, which must be at one iteration.
  CheckpointWriter(const std::string& root, Iteration iteration, const Roles& roles);
  void write_workers(const State& own);
  void add_servers(const std::vector<trace::WrittenFile>& files) { servers_ = files; }
  /// Worker 0 completes the manifest, which brings tensors, slicing, sync and seed, and writes it. Returns the folder.
  std::string finish(Manifest manifest, std::uint32_t keep);

 private:
  std::string root_;
  Iteration iteration_;
  const Roles& roles_;
  std::vector<std::string> names_;
  std::vector<trace::WrittenFile> servers_;
  std::vector<trace::WrittenFile> workers_;
};

}  // namespace fluentps
