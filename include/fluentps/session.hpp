/// A run of the parameter server inside an MPI job: ranks are split into servers and workers, servers serve, workers
/// work.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fluentps/clock.hpp"
#include "fluentps/optimizer.hpp"
#include "fluentps/state.hpp"
#include "fluentps/types.hpp"
#include "fluentps/worker.hpp"

namespace fluentps {

class Device;
namespace trace {
class WorkerTrace;
}

/// Defaults are good for a few nodes. The texts are those of the options of fluentps-train.
struct SessionOptions {
  // Roles
  std::uint32_t servers = 1;         ///< ranks that become servers; FLUENTPS_ROLE=server|worker of a rank wins
  std::string placement = "spread";  ///< spread | first | last
  /// none | node | size=K. node: the workers of a node are a local group; their updates are added up on the first of
  /// them, which pushes and pulls for all, and the weights are broadcast. size=K: groups of K, the last of a node may
  /// be smaller. The servers' clocks, and the counts in `sync`, then count groups; an update still weighs 1/N, N
  /// workers. The members of a group call initialize, push, pull and push_pull together, and leave after the same
  /// iteration; set_lr of the first one counts. docs/transports.md
  std::string local_group = "none";
  // Parameters
  std::vector<TensorSpec> tensors;  ///< the same on all workers; servers may leave it empty
  /// Instead of `tensors`: called once on every worker when the roles are known, to load data and make the model. What
  /// it throws on any rank ends all ranks alike, before anything is written.
  std::function<std::vector<TensorSpec>(WorkerIndex index, std::uint32_t workers)> prepare;
  /// With local groups called on every worker after `prepare`, where set: how many iterations it will have made at the
  /// end. Members of a group that differ are refused at the start, not when the first one leaves.
  std::function<Iteration()> iterations;
  std::string slicing = "eps";  ///< eps | tensor | range
  /// What else must be the same on all ranks, `name = value` lines; a rank that differs ends all before the start.
  std::string configuration;
  /// The workers push gradients, and each server makes one step of this optimizer on its shard per aggregate: bsp and
  /// drop one per advance of V, softsync one per group, the others one per push with lr/N. None: the servers add
  /// update/N.
  std::optional<UpdateRuleOptions> server_optimizer;
  // Synchronization
  std::string sync = "ssp:s=3";             ///< docs/sync-models.md
  std::string release = "lazy";             ///< soft | lazy
  std::string coordination = "per-server";  ///< per-server | central
  std::string coin = "shared";              ///< shared | per-server
  std::string staleness_scale = "none";     ///< none | inverse | dynsgd
  bool only_fastest = false;                ///< only the fastest worker may be delayed
  bool join = false;                        ///< a pull is also delayed where another one waits at the same iteration
  std::uint64_t seed = 1;                   ///< of the coin
  // Transport
  std::string transport = "auto";  ///< auto | rma | p2p
  /// Of one transfer; smaller overlaps more, larger costs fewer messages. 0: a 16th of the largest shard, 64 to 256 in
  /// the memory of one node, 256 to 1024 over rma between nodes, 64 to 1024 over p2p; with gpu_transfer 1024.
  std::uint32_t chunk_kib = 0;
  /// Chunks in flight per worker and server; a server holds workers x ring chunks. 0: 2 in the memory of one node,
  /// else 4.
  std::uint32_t ring = 0;
  std::string wire = "fp32";  ///< fp32 | bf16 | fp16: how numbers travel; servers keep float32
  bool pslite_keys = false;   ///< move a 64-bit key with every float32, as the published PS-Lite baseline does
  std::string wait = "auto";  ///< auto | spin | yield | sleep
  // GPUs
  /// off | auto | direct | staged: shards lie on the servers' GPUs, buffers of workers may lie on theirs (docs/gpu.md).
  std::string gpu_transfer = "off";
  std::shared_ptr<Device> device;  ///< this rank's, instead of the CUDA device that it would open; may be null
  // Limits
  double stall_s = 30;  ///< report who waits for whom after so long without a message
  double abort_s = 60;  ///< end the run after so long without a message
  // Checkpoints and signals
  std::string checkpoint_dir;  ///< seen by all ranks; empty: `checkpoints` in the run's folder, none without a trace
  std::string resume;          ///< a checkpoint, the folder of some, or a run's folder; empty: start anew
  std::uint32_t keep_checkpoints = 2;  ///< older ones are removed; 0: none is
  std::function<bool()> stop_wanted;   ///< whether this rank has been told to stop, see Worker::stop_at; may be unset
  std::function<void()> poll;          ///< called often, also while a rank waits; may throw to end the run
  // Trace
  std::string out;           ///< the run gets its own folder in here, seen by all ranks; empty: no trace
  std::string run_id;        ///< name of that folder; empty: from date, time and model. Never reused: -r1, -r2 ...
  double trace_flush_s = 2;  ///< rows older than this are on disk
  std::vector<std::pair<std::string, std::string>> trace_attributes;  ///< further provenance, written to every file
};

/// What this rank did, for a report.
struct SessionStatistics {
  std::uint64_t pushes = 0;  ///< received (server)
  std::uint64_t pulls = 0;
  std::uint64_t delayed_pulls = 0;
  std::uint64_t dropped_pushes = 0;
  std::uint64_t bytes = 0;
  double staleness_mean = 0;  ///< of the pushes
  std::uint64_t staleness_max = 0;
};

class Session {
 public:
  /// Collective over `parent`, which may be freed afterwards. Throws UsageError on all ranks alike.
  Session(MPI_Comm parent, const SessionOptions& options);
  /// Collective, unless an exception unwinds.
  ~Session();

  /// Collective over `parent`, instead of a session: roles, configuration, data, memory of every node and the
  /// transport's self-test are checked as at a start, but nothing is allocated or written. Returns a report on rank 0,
  /// "" elsewhere; throws as the constructor does.
  static std::string preflight(MPI_Comm parent, const SessionOptions& options);

  bool is_server() const;
  /// Index in the own communicator.
  std::uint32_t index() const;
  std::uint32_t servers() const;
  std::uint32_t workers() const;
  std::uint32_t groups() const;  ///< local groups of workers; without them workers()
  MPI_Comm job() const;          ///< all ranks; owned by the session
  MPI_Comm own() const;          ///< the servers' or the workers' communicator
  Clock& clock();
  /// "worker 3 (rank 5 on node7)"
  std::string name() const;
  /// The shard map as a table.
  std::string shard_table() const;
  /// The transport in use and why, e.g. "rma: put, get and flush work ...".
  std::string transport() const;
  /// The way between GPUs and MPI, with what it carries; "" without GPUs.
  std::string gpu_transfer() const;
  /// This rank's GPU; null without.
  Device* device() const;

  /// Collective. Workers run `body` and leave; servers serve until the last worker has left. Once per session.
  void run(const std::function<void(Worker&)>& body);

  /// Number of the first iteration: 0, or that of the checkpoint a resumed run starts from.
  Iteration first_iteration() const;

  /// Of the workers, collectively, inside run's body, each having pulled after its push of the same iteration. Writes
  /// servers' shards and optimizers and each worker's `own` state; returns when all of it is on the disk, with its
  /// folder. Throws RunError where anything cannot be written; the checkpoint before is left as it was.
  std::string checkpoint(const State& own);

  /// On a worker of a resumed run: reads this worker's state back into `own`, which has the same names and lengths as
  /// the checkpoint's. In a run with another number of workers, of worker `index mod N then`.
  void restore(const State& own);

  /// Collective, after run: the servers' weights, all n, on worker 0; empty elsewhere.
  std::vector<float> gather_weights();

  /// The folder of this run, "" without a trace.
  std::string run_dir() const;

  /// Collective, after run: closes the traces and merges them into one file; returns its path on rank 0, else "".
  std::string close_trace();

  /// Of this server; zeros on a worker.
  SessionStatistics statistics() const;

  /// Where a worker's own rows go (src/trace/writer.hpp); null on servers and without a trace.
  trace::WorkerTrace* worker_trace();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluentps
