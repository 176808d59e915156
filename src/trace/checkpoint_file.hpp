/// One rank's part of a checkpoint: named float32 arrays and numbers in an HDF5 file, with a checksum over the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fluentps/state.hpp"

namespace fluentps::trace {

/// For the manifest.
struct WrittenFile {
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;  ///< CRC-32 of the whole file
  friend bool operator==(const WrittenFile&, const WrittenFile&) = default;
};

struct LoadedState {
  std::map<std::string, std::vector<float>> arrays;
  std::map<std::string, double> numbers;
};

/// Writes each array as a dataset under its name ('/' makes groups), each number as a scalar dataset below /numbers.
/// The file appears whole or not at all. Throws Hdf5Error or RunError naming the path.
WrittenFile save_state(const std::string& path, const State& state);

/// Throws UsageError or Hdf5Error naming the path. Check the file first: see measure_file.
LoadedState load_state(const std::string& path);

/// Size and checksum of a file as it lies on the disk. Throws UsageError where it cannot be read.
WrittenFile measure_file(const std::string& path);

}  // namespace fluentps::trace
