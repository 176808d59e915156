/// The sum of the first pushes to arrive, applied when complete: of one iteration (drop), or of any (softsync).
/// A push is admitted with its first chunk; one that is not waits in its ring until the next sum. Plain C++.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fluentps/types.hpp"
#include "ps/ordered_sum.hpp"

namespace fluentps {

class ArrivalSum {
 public:
  /// As OrderedSum's.
  ArrivalSum(ShardMemory& memory, std::span<float> weights, std::uint32_t workers, std::uint32_t chunks,
             std::int64_t chunk_elements, Commit commit);

  /// `wanted`: pushes in this sum. `writable`: false while weights of a snapshot are still being read.
  Taken take(const UpdateChunk& chunk, std::uint32_t wanted, bool writable);
  /// Whether a sum of `wanted` pushes is complete but not applied, as after a worker left.
  bool complete(std::uint32_t wanted) const { return finished_ > 0 && finished_ >= wanted && open_ == 0; }
  /// Applies what is there, scaled by 1 / pushes in it.
  void apply();
  /// Pushes admitted that are not complete.
  std::uint32_t open() const { return open_; }
  std::uint64_t completed() const { return completed_; }

 private:
  std::span<float> part(std::span<float> of, std::uint32_t chunk) const;

  ShardMemory& memory_;
  std::span<float> weights_;
  std::uint32_t chunks_;
  std::int64_t chunk_elements_;
  Commit commit_;
  std::span<float> sum_;
  std::vector<std::uint8_t> open_of_;     ///< by worker: its push is in this sum and not complete
  std::vector<std::uint32_t> additions_;  ///< by chunk: contributions in the sum
  std::uint32_t open_ = 0;                ///< admitted, not complete
  std::uint32_t finished_ = 0;
  std::uint64_t completed_ = 0;
  double lr_ = 0;  ///< of the chunk taken last
};

}  // namespace fluentps
