/// Synchronization models: when a server answers a pull, and when its clock V advances.
///
/// Notation (paper, section III): N workers; V (V_train) is the smallest iteration that not every active worker has
/// pushed; Count[i] the pushes of iteration i seen; k = i - V how far the requester of a pull at iteration i is ahead.
/// A user adds a model with one class and one line in the registry (docs/sync-models.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fluentps/types.hpp"

namespace fluentps {

/// A server's clocks, as a model sees them. Read-only; owned by the controller.
class SyncState {
 public:
  virtual ~SyncState() = default;
  /// N, the number of workers the run started with.
  virtual std::uint32_t workers() const = 0;
  /// Workers that have not left.
  virtual std::uint32_t active_workers() const = 0;
  virtual bool active(WorkerIndex worker) const = 0;
  /// V.
  virtual Iteration v() const = 0;
  /// Pushes worker has completed, that is the iteration it pushes next.
  virtual Iteration progress(WorkerIndex worker) const = 0;
  /// Largest progress of the active workers; of all, once everyone has left.
  virtual Iteration fastest() const = 0;
  /// Count[iteration]: completed pushes of that iteration, those of workers that left later included. 0 below V (late
  /// pushes count for nothing) and where nobody has been yet.
  virtual std::uint32_t count(Iteration iteration) const = 0;
  /// The part of count(iteration) that came from workers still active.
  virtual std::uint32_t active_count(Iteration iteration) const = 0;
  /// Nanoseconds of the event being handled.
  virtual std::int64_t now_ns() const = 0;
  /// Nanoseconds of the first push of iteration V, if anybody has pushed it.
  virtual std::optional<std::int64_t> first_push_ns() const = 0;
  /// Uniform in [0, 1): the one coin of (seed, worker, iteration), the same on all servers; with coin=per-server also
  /// of the server. Drawing it again gives the same value.
  virtual double coin(WorkerIndex worker, Iteration iteration) const = 0;
};

/// How pushed updates reach the shard.
struct Aggregation {
  enum class Kind {
    kImmediate,      ///< applied on arrival, scaled 1/N
    kOrderedSum,     ///< summed in worker order, applied once when V advances (bsp): snapshots, bit-identical
    kFirstArrivals,  ///< the first `count` pushes of iteration V summed, applied when V advances; later ones dropped
    kGroups          ///< averaged and applied once per `count` pushes (softsync)
  };
  Kind kind = Kind::kImmediate;
  std::uint32_t count = 0;
  friend bool operator==(const Aggregation&, const Aggregation&) = default;
};

class SyncModel {
 public:
  virtual ~SyncModel() = default;
  /// The spec that gives this model, in canonical form, e.g. "pssp:s=3,c=0.1".
  virtual std::string spec() const = 0;
  /// Whether a pull of `worker` at iteration `i` is answered now. Must be monotone in V: once true it stays true. Not
  /// asked where i < V: everybody's push is in, the controller answers by itself, and so strands no pull.
  virtual bool may_pull(const SyncState& state, WorkerIndex worker, Iteration i) const = 0;
  /// Whether a buffered pull may go under the soft release. Default: may_pull.
  virtual bool may_release(const SyncState& state, WorkerIndex worker, Iteration i) const {
    return may_pull(state, worker, i);
  }
  /// Smallest V at which the soft release lets a buffered pull of iteration i go, where that depends on nothing but V:
  /// the controller then files it there and each release costs O(1). At most i + 1 is used: V > i always releases.
  /// nullopt: see waits_for.
  virtual std::optional<Iteration> release_at(const SyncState&, WorkerIndex, Iteration) const { return std::nullopt; }
  /// Where there is no such V: a worker without whose next push, or leaving, a buffered pull cannot go under the soft
  /// release; it is then re-checked at that worker's events only. nullopt: at every event.
  virtual std::optional<WorkerIndex> waits_for(const SyncState&, WorkerIndex, Iteration) const { return std::nullopt; }
  /// Whether V advances. Default: every active worker has pushed iteration V. Asked only while somebody has pushed it.
  virtual bool may_advance(const SyncState& state) const {
    return state.active_count(state.v()) >= state.active_workers();
  }
  /// Time at which may_advance should be asked again although nothing arrived (partial:timeout_ms).
  virtual std::optional<std::int64_t> deadline_ns(const SyncState&) const { return std::nullopt; }
  /// Told of every completed push of an iteration it rules, counted already, before may_advance is asked (dssp learns
  /// the push times).
  virtual void on_push(const SyncState&, WorkerIndex, Iteration) {}
  /// Told of every answer to a pull that it rules, at once or delayed.
  virtual void on_answer(const SyncState&, WorkerIndex, Iteration) {}
  virtual Aggregation aggregation() const { return {}; }
};

/// Key=value arguments of a spec, e.g. {"s","3"} of "ssp:s=3".
using SyncArguments = std::map<std::string, std::string, std::less<>>;

/// One line of the registry: what --list-sync shows, and the maker. `make` throws UsageError on bad arguments.
struct SyncModelEntry {
  std::string name;       ///< "ssp"
  std::string signature;  ///< "ssp:s=S"
  std::string answers;    ///< condition under which a pull is answered, e.g. "i < V+s"
  std::string advances;   ///< condition under which V advances
  std::string source;     ///< where it is from
  std::function<std::unique_ptr<SyncModel>(const SyncArguments&, std::uint32_t workers)> make;
};

/// All models, built-in first. Not thread-safe: register before the session starts.
const std::vector<SyncModelEntry>& sync_models();
/// Adds a model; throws std::logic_error when the name is taken.
void register_sync_model(SyncModelEntry entry);

}  // namespace fluentps
