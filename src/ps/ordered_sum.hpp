/// The sum of one iteration's updates, added in worker order whatever the order of arrival, so that a bsp run gives the
/// same bits whatever the timing, the transport and the number of servers. Plain C++.
///
/// Chunk c of worker w is taken only after chunk c of the worker before it. Taken chunks may be held in their slots
/// until the last one is here: then one pass over memory reads them all and writes the weights. Where a slot is wanted
/// back earlier, or kBatch are held, what is held goes into a sum first:
///
///   held      worker 0, 1, 2: nothing             last worker: w += (((u0 + u1) + u2) + u3) / N
///   not held  worker 0: sum = u   1, 2: sum += u  last worker: w += (sum + u3) / N
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fluentps/types.hpp"
#include "shard/kernels.hpp"
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

/// What became of a chunk: in the shard or the sum; taken, but its values are still read; not possible yet, to be
/// offered again; dropped for good.
enum class Taken : std::uint8_t { kTaken, kHeld, kBlocked, kDropped };

/// Applies a complete sum of the whole shard: an optimizer on the server. `scale` makes it a mean, `lr` is that of the
/// push that came last. `sum` may be overwritten. Empty: weights += scale * sum.
using Commit = std::function<void(std::span<float> sum, float scale, double lr)>;

class OrderedSum {
 public:
  /// As many chunks of one position are held at most: with the sum of those before, the terms of one pass.
  static constexpr std::size_t kBatch = kernels::kMostTerms - 1;

  /// `weights` and the values of all chunks lie in `memory`, which outlives the sum. `hold`: chunks of one worker that
  /// may be held, so many fewer slots than it has; with 0, values are used before take returns.
  OrderedSum(ShardMemory& memory, std::span<float> weights, std::uint32_t workers, std::uint32_t chunks,
             std::int64_t chunk_elements, std::uint32_t hold, Commit commit);

  /// kHeld, until next_used() names its worker, or kBlocked.
  Taken take(const UpdateChunk& chunk);
  /// Uses all that is held of this worker.
  void let_go(WorkerIndex worker);
  /// A worker whose oldest chunk in use has been used, once for each; none: no more have been.
  std::optional<WorkerIndex> next_used();
  /// This worker contributes to no iteration from `from` on. Completes the sum where it waited for this worker only.
  void leave(WorkerIndex worker, Iteration from);
  /// The worker whose chunks may have become possible by a chunk of `worker`.
  std::optional<WorkerIndex> successor(WorkerIndex worker) const;
  /// Chunks of the sum under way that are in the weights; 0 where none is under way.
  std::uint32_t applied() const { return iteration_ ? applied_ : 0; }
  /// Sums applied so far.
  std::uint64_t completed() const { return completed_; }

 private:
  void begin(Iteration iteration);
  void find_contributors();
  void settle();
  void use_oldest(WorkerIndex worker);
  void use(std::uint32_t chunk, std::uint32_t position);
  std::uint32_t used_of(std::uint32_t worker) const;
  std::size_t held(std::uint32_t chunk, std::uint32_t position) const;
  std::span<float> sum(std::uint32_t chunk);
  std::span<float> part(std::span<float> of, std::uint32_t chunk) const;
  void complete();

  ShardMemory& memory_;
  std::span<float> weights_;
  std::uint32_t workers_;
  std::uint32_t chunks_;
  std::int64_t chunk_elements_;
  Commit commit_;
  float scale_;
  std::uint32_t hold_;
  std::span<float> sum_;  ///< allocated when first wanted
  std::optional<Iteration> iteration_;
  std::vector<Iteration> left_from_;                      ///< by worker
  std::vector<std::uint32_t> taken_;                      ///< by worker: chunks of this iteration
  std::vector<std::deque<std::span<const float>>> held_;  ///< by worker: the last of these, in order
  std::vector<std::span<const float>> terms_;             ///< of the pass under way
  std::vector<WorkerIndex> used_;
  std::vector<std::uint32_t> contributors_;  ///< of this iteration, ascending
  std::vector<std::uint32_t> position_;      ///< by worker, in contributors_
  std::uint32_t applied_ = 0;                ///< chunks in the weights
  double lr_ = 0;                            ///< of the chunk taken last
  std::uint64_t completed_ = 0;
};

}  // namespace fluentps
