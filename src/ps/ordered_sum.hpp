/// The sum of one iteration's updates, added in worker order whatever the order of arrival, so that a bsp run gives the
/// same bits whatever the timing, the transport and the number of servers. Plain C++.
///
/// Chunk c of worker w is taken only after chunk c of the worker before it. The first contribution stores, the last one
/// is applied while it is added, so there is no zeroing pass and no pass of its own for the application:
///
///   worker 0: sum = u     worker 1: sum += u    ...    last worker: w += (sum + u) / N
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fluentps/types.hpp"
#include "shard/shard_memory.hpp"

namespace fluentps {

/// One piece of a push, in elements of the shard.
struct UpdateChunk {
  WorkerIndex worker;
  Iteration iteration = 0;
  std::uint32_t index = 0;  ///< 0..chunks-1
  std::int64_t first = 0;   ///< its first element in the shard
  std::span<const float> values;
  bool last = false;
  float factor = 1;  ///< of the staleness scaling
  double lr = 0;     ///< of the worker's schedule, for an optimizer on the server
};

/// What became of a chunk: in the shard or the sum; not possible yet, to be offered again; dropped for good.
enum class Taken : std::uint8_t { kTaken, kBlocked, kDropped };

/// Applies a complete sum of the whole shard: an optimizer on the server. `scale` makes it a mean, `lr` is that of the
/// push that came last. `sum` may be overwritten. Empty: weights += scale * sum.
using Commit = std::function<void(std::span<float> sum, float scale, double lr)>;

class OrderedSum {
 public:
  /// `weights` and the values of all chunks lie in `memory`, which outlives the sum.
  OrderedSum(ShardMemory& memory, std::span<float> weights, std::uint32_t workers, std::uint32_t chunks,
             std::int64_t chunk_elements, Commit commit);

  Taken take(const UpdateChunk& chunk);
  /// This worker contributes to no iteration from `from` on. Completes the sum where it waited for this worker only.
  void leave(WorkerIndex worker, Iteration from);
  /// The worker whose chunks may have become possible by a chunk of `worker`.
  std::optional<WorkerIndex> successor(WorkerIndex worker) const;
  /// Sums applied so far.
  std::uint64_t completed() const { return completed_; }

 private:
  void begin(Iteration iteration);
  void find_contributors();
  void settle();
  std::span<float> part(std::span<float> of, std::uint32_t chunk) const;
  void complete();

  ShardMemory& memory_;
  std::span<float> weights_;
  std::uint32_t workers_;
  std::uint32_t chunks_;
  std::int64_t chunk_elements_;
  Commit commit_;
  float scale_;
  std::span<float> sum_;  ///< allocated when the second worker contributes
  std::optional<Iteration> iteration_;
  std::vector<Iteration> left_from_;         ///< by worker
  std::vector<std::uint32_t> taken_;         ///< by worker: chunks of this iteration
  std::vector<std::uint32_t> contributors_;  ///< of this iteration, ascending
  std::vector<std::uint32_t> position_;      ///< by worker, in contributors_
  std::uint32_t applied_ = 0;                ///< chunks in the weights
  double lr_ = 0;                            ///< of the chunk taken last
  std::uint64_t completed_ = 0;
};

}  // namespace fluentps
