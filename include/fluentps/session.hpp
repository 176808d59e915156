/// A run of the parameter server inside an MPI job: ranks are split into servers and workers, servers serve, workers work.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fluentps/clock.hpp"
#include "fluentps/types.hpp"
#include "fluentps/worker.hpp"

namespace fluentps {

namespace trace {
class WorkerTrace;
}

/// Defaults are good for a few nodes. The texts are those of the options of fluentps-train.
struct SessionOptions {
  // Roles
  std::uint32_t servers = 1;           ///< ranks that become servers; FLUENTPS_ROLE=server|worker of a rank wins
  std::string placement = "spread";    ///< spread | first | last
  // Parameters
  std::vector<TensorSpec> tensors;     ///< the same on all workers; servers may leave it empty
  /// Instead of `tensors`: called once on every worker when the roles are known, to load data and make the model. What
  /// it throws on any rank ends all ranks alike, before anything is written.
  std::function<std::vector<TensorSpec>(WorkerIndex index, std::uint32_t workers)> prepare;
  std::string slicing = "eps";         ///< eps | tensor | range
  /// What else must be the same on all ranks, `name = value` lines; a rank that differs ends all before the start.
  std::string configuration;
  // Synchronization
  std::string sync = "ssp:s=3";        ///< docs/sync-models.md
  std::string release = "lazy";        ///< soft | lazy
  std::string coordination = "per-server";  ///< per-server | central
  std::string coin = "shared";         ///< shared | per-server
  std::string staleness_scale = "none";     ///< none | inverse | dynsgd
  bool only_fastest = false;           ///< only the fastest worker may be delayed
  bool join = false;                   ///< a pull is also delayed where another one waits at the same iteration
  std::uint64_t seed = 1;              ///< of the coin
  // Transport
  std::string transport = "auto";      ///< auto | rma | p2p
  std::uint32_t chunk_kib = 1024;      ///< of one transfer; smaller overlaps more, larger costs fewer messages
  std::uint32_t ring = 4;              ///< chunks in flight per worker and server; a server holds workers x ring chunks
  std::string wire = "fp32";           ///< fp32 | bf16 | fp16: how numbers travel; servers keep float32
  bool pslite_keys = false;            ///< move a 64-bit key with every float32, as the published PS-Lite baseline does
  std::string wait = "auto";           ///< auto | spin | yield | sleep
  // Limits
  double stall_s = 30;                 ///< report who waits for whom after so long without a message
  double abort_s = 60;                 ///< end the run after so long without a message
  // Trace
  std::string out;                     ///< the run gets its own folder in here, seen by all ranks; empty: no trace
  std::string run_id;                  ///< name of that folder; empty: from date and time. Never reused: -r1, -r2 ...
  double trace_flush_s = 2;            ///< rows older than this are on disk
  std::vector<std::pair<std::string, std::string>> trace_attributes;  ///< further provenance, written to every file
};

/// What this rank did, for a report.
struct SessionStatistics {
  std::uint64_t pushes = 0;            ///< received (server)
  std::uint64_t pulls = 0;
  std::uint64_t delayed_pulls = 0;
  std::uint64_t dropped_pushes = 0;
  std::uint64_t bytes = 0;
  double staleness_mean = 0;           ///< of the pushes
  std::uint64_t staleness_max = 0;
};

class Session {
 public:
  /// Collective over `parent`, which may be freed afterwards. Throws UsageError on all ranks alike.
  Session(MPI_Comm parent, const SessionOptions& options);
  /// Collective, unless an exception unwinds.
  ~Session();

  bool is_server() const;
  /// Index in the own communicator.
  std::uint32_t index() const;
  std::uint32_t servers() const;
  std::uint32_t workers() const;
  MPI_Comm job() const;      ///< all ranks; owned by the session
  MPI_Comm own() const;      ///< the servers' or the workers' communicator
  Clock& clock();
  /// "worker 3 (rank 5 on node7)"
  std::string name() const;
  /// The shard map as a table.
  std::string shard_table() const;
  /// The transport in use and why, e.g. "rma: put, get and flush work ...".
  std::string transport() const;

  /// Collective. Workers run `body` and leave; servers serve until the last worker has left. Once per session.
  void run(const std::function<void(Worker&)>& body);

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
