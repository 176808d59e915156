/// The manifest of a checkpoint: what it holds, and checksums of its files. Written last, it makes a folder a
/// checkpoint.
///
///   ROOT/iteration-0000000600/server-0000.h5 ...  worker-0000.h5 ...  manifest.json
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fluentps/types.hpp"
#include "trace/checkpoint_file.hpp"

namespace fluentps {

struct Manifest {
  struct File {
    std::string name;
    trace::WrittenFile written;
  };
  std::string folder;  ///< where it lies; not in the file
  Iteration iteration = 0;
  std::uint32_t servers = 0;
  std::uint32_t workers = 0;
  std::vector<TensorSpec> tensors;
  std::string slicing;
  std::string sync;
  std::uint64_t seed = 0;
  std::vector<std::string> worker_state;  ///< names of the arrays in a worker's file
  std::vector<File> files;                ///< servers first
};

/// "ROOT/iteration-0000000600"
std::string checkpoint_folder(const std::string& root, Iteration iteration);
std::string server_file(std::uint32_t index);
std::string worker_file(std::uint32_t index);

/// Writes manifest.folder/manifest.json; it appears whole or not at all. Throws RunError.
void write_manifest(const Manifest& manifest);
/// Removes all but the newest `keep` whole checkpoints of a root, and what was never finished before them; 0: nothing.
void remove_old(const std::string& root, std::uint32_t keep);

/// `path`: a checkpoint, a folder of checkpoints (the newest whole one is taken) or a run's folder. Reads the manifest
/// and nothing else. Throws UsageError: none there, or damaged (then it offers the one before).
Manifest find_checkpoint(const std::string& path);
/// Compares a file with the manifest. Throws UsageError naming it, and the checkpoint before.
void check_file(const Manifest& manifest, const Manifest::File& file);

}  // namespace fluentps
