/// The few value types that every room shares.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace fluentps {

/// Index of a worker, 0..N-1; its rank in the worker communicator.
struct WorkerIndex {
  std::uint32_t value = 0;
  friend auto operator<=>(const WorkerIndex&, const WorkerIndex&) = default;
};

/// Index of a server, 0..S-1; its rank in the server communicator.
struct ServerIndex {
  std::uint32_t value = 0;
  friend auto operator<=>(const ServerIndex&, const ServerIndex&) = default;
};

/// Number of an iteration, from 0. Signed, so that a gap `i - V` needs no care. -1 is the pull before the first push.
using Iteration = std::int64_t;

/// Name and shape of one parameter tensor; parameters lie flat, tensor after tensor, row-major float32.
struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;

  std::int64_t size() const {
    std::int64_t count = 1;
    for (const auto extent : shape) count *= extent;
    return count;
  }
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

}  // namespace fluentps
