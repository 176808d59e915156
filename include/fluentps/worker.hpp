/// The worker's side of the parameter server: push an update, pull weights.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "fluentps/types.hpp"

namespace fluentps {

/// Where the time of the last push and pull went, and what came of it.
struct Transfer {
  std::int64_t push_ns = 0;   ///< from the start of the push until all chunks are at the servers (waits for slots too)
  std::int64_t wait_ns = 0;   ///< waiting for the servers' answers, and for the members of the local group
  std::int64_t pull_ns = 0;   ///< moving weights
  std::uint64_t bytes = 0;    ///< payload pushed and pulled; in a local group on its first member, 0 on the others
  Iteration staleness = 0;    ///< largest i - V over the servers at the answer, 0 or more
  std::uint32_t delayed = 0;  ///< servers that delayed the pull
  std::uint64_t delayed_total = 0;  ///< delayed pulls of all workers on all servers so far, as last heard
};

/// Made by Session; used by the one rank that owns it. Buffers are flat, all n parameters, float32, in the host's
/// memory or, where the session uses GPUs, in that of this rank's GPU: what is given has been computed when the call is
/// made (synchronize the stream), what is got is there when it returns. They belong to the caller and may be changed as
/// soon as a call returns. Iterations are counted here: the k-th push is iteration k, from 0. Throws RunError (stall,
/// lost server), UsageError (wrong length, push before initialize). In a local group (SessionOptions::local_group)
/// every call but set_lr and request_stop is the group's: it returns when all members have made it.
class Worker {
 public:
  virtual ~Worker() = default;
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  virtual WorkerIndex index() const = 0;
  /// N, the number of workers the run started with.
  virtual std::uint32_t workers() const = 0;
  /// n, the number of parameters.
  virtual std::int64_t parameters() const = 0;
  /// Number of the next iteration: pushes done so far, those before the checkpoint of a resumed run included.
  virtual Iteration iteration() const = 0;

  /// First call, on every worker: worker 0's values become the weights of the servers, all others' are overwritten by
  /// them. In a resumed run all are overwritten by the checkpoint's.
  virtual void initialize(std::span<float> weights) = 0;
  /// Adds update/N to the weights (with an optimizer on the server: gives it the gradient). Not awaited by the servers'
  /// answer: returns when the data has left `update`.
  virtual void push(std::span<const float> update) = 0;
  /// The weights after the own last push, as soon as every server's condition allows. All own pushes are included
  /// (softsync, which applies pushes in groups, excepted).
  virtual void pull(std::span<float> weights) = 0;
  /// push and pull in one exchange: one message less per server. Throws UsageError where `update` and `weights`
  /// overlap.
  virtual void push_pull(std::span<const float> update, std::span<float> weights) = 0;
  /// The learning rate of the pushes from now on; heard only by an optimizer on the server.
  virtual void set_lr(double lr) = 0;
  /// Asks that all workers stop together soon: see stop_at. Any worker may, more than once too.
  virtual void request_stop() = 0;
  /// Where a stop was asked for by any rank, as soon as it is known here: the iteration before which every worker
  /// leaves its loop, the same on all and not passed by any. Else kNever. Look after each pull.
  virtual Iteration stop_at() const = 0;
  static constexpr Iteration kNever = std::numeric_limits<Iteration>::max();
  /// Of the last push and the last pull.
  virtual const Transfer& last_transfer() const = 0;
};

}  // namespace fluentps
