/// Weights in an HDF5 file, a dataset per tensor.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fluentps/types.hpp"

namespace fluentps::trace {

/// Writes `weights` (float32, flat, tensor after tensor) to `path`, each tensor as a dataset of its shape under its
/// name; a '/' in a name makes groups. The file appears whole or not at all; an existing one is replaced. Throws
/// Hdf5Error or RunError naming the path, UsageError where the sizes do not fit the tensors.
void save_weights(const std::string& path, const std::vector<TensorSpec>& tensors, std::span<const float> weights);

}  // namespace fluentps::trace
