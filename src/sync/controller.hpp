/// Decides alone, for one server, when a pull is answered and when the clock V advances. Plain C++: no MPI, no clock
/// but the one passed in. Serves the live server, the central-scheduler baseline and the tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "fluentps/sync_model.hpp"
#include "fluentps/types.hpp"
#include "sync/sync_plan.hpp"

namespace fluentps {

/// How delayed pull requests (DPRs) are released. soft: as soon as the pull condition holds again. lazy: when every
/// worker has pushed the requester's iteration, V > i.
enum class Release { kSoft, kLazy };
Release parse_release(std::string_view text);  ///< throws UsageError
std::string_view to_string(Release release);

struct ControllerOptions {
  std::uint32_t workers = 1;  ///< N
  Release release = Release::kLazy;
  std::uint64_t seed = 1;         ///< of the coin
  bool coin_per_server = false;   ///< default: one coin for all servers
  bool only_fastest = false;      ///< `fastest`: only a worker that is (one of) the fastest may be delayed
  bool join = false;              ///< `join`: a pull at i is also delayed if another already waits at i
  Iteration first_iteration = 0;  ///< V and every worker's progress at the start: more than 0 in a resumed run
};

/// An answered pull. The weights of the moment are its answer.
struct Grant {
  WorkerIndex worker;
  Iteration iteration = 0;
  Iteration v_request = 0;  ///< V when it was asked
  bool delayed = false;     ///< it was a DPR
};

class Controller {
 public:
  /// `plan` decides which model rules which iteration on `server`.
  Controller(const ControllerOptions& options, const SyncPlan& plan, ServerIndex server);
  ~Controller();

  /// The push of iteration i of this worker is complete (all its chunks are in the shard or in the sum). May advance V
  /// and release delayed pulls: see take_grants. Returns false when it was late (i < V on arrival).
  /// Throws ProtocolError, changing nothing: unknown worker, one that has left, i != progress(worker) (duplicate or
  /// gap), one that pushes on although its pull still waits (it would break the bound).
  bool push(WorkerIndex worker, Iteration i, std::int64_t now_ns);

  /// A pull of this worker at iteration i: the iteration it pushed last, -1 before its first push. Appends the grant
  /// when it is answered now, else buffers it. Returns whether it was answered now.
  /// Throws ProtocolError, changing nothing: unknown worker, i != progress-1, a pull of this worker is already waiting.
  bool pull(WorkerIndex worker, Iteration i, std::int64_t now_ns);

  /// This worker will push no more; the conditions count without it from now on. May advance V and release delayed
  /// pulls. A pull of its own that waits is still answered. Throws ProtocolError, changing nothing: unknown worker, one
  /// that has left.
  void leave(WorkerIndex worker, std::int64_t now_ns);

  /// Asks again what only time can change. Call at deadline_ns() or later; nullopt: nothing here waits for time.
  void tick(std::int64_t now_ns);
  std::optional<std::int64_t> deadline_ns() const;

  /// Grants since the last call, in the order they were decided.
  std::vector<Grant> take_grants();

  const SyncState& state() const;
  const SyncModel& model_at(Iteration i) const;
  /// Delayed pulls that wait now, by worker.
  std::vector<Grant> waiting() const;
  /// Total number of delayed pulls so far.
  std::uint64_t delayed_pulls() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluentps
