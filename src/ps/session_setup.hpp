/// The steps of making a session that need no session: parsing options, agreeing on tensors, sizes and attributes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fluentps/session.hpp"
#include "net/gpu_transfer.hpp"
#include "net/groups.hpp"
#include "net/roles.hpp"
#include "net/transport.hpp"
#include "net/waiter.hpp"
#include "ps/server.hpp"
#include "shard/shard_map.hpp"
#include "sync/controller.hpp"
#include "trace/writer.hpp"

namespace fluentps {

/// The textual options, as values.
struct ParsedOptions {
  Placement placement = Placement::kSpread;
  Slicing slicing = Slicing::kEps;
  Release release = Release::kLazy;
  StalenessScale staleness_scale = StalenessScale::kNone;
  TransportKind transport = TransportKind::kAuto;
  WaitPolicy wait = WaitPolicy::kAuto;
  WireFormat wire = WireFormat::kFp32;
  GpuTransfer gpu_transfer = GpuTransfer::kOff;
  GroupRule group;
  bool central = false;
  bool coin_per_server = false;
};

/// Throws UsageError with the option's name.
ParsedOptions parse(const SessionOptions& options);

/// One line per option that must be the same on all ranks.
std::string to_text(const SessionOptions& options);

/// Collective over roles.job: worker 0's tensors on every rank. Throws UsageError where another worker has other ones.
std::vector<TensorSpec> share_tensors(const Roles& roles, const std::vector<TensorSpec>& own);

/// Collective over roles.job: throws UsageError where members of a local group, whose communicator `group` is (empty on
/// servers), make other numbers of iterations than its first.
void check_iterations(const Roles& roles, const Comm& group, Iteration own);

/// Collective over roles.job: what worker 0, which leads a group, chose with the servers, on all.
TransportChoice share_choice(const Roles& roles, const TransportChoice& own);

/// Collective over roles.job: makes the folder of this run and returns its path on all ranks.
std::string claim_run_dir(const Roles& roles, const SessionOptions& options);

struct Chunking {
  std::int64_t elements = 0;  ///< of one chunk of a push: even, and no more than the largest shard needs
  std::uint32_t ring = 0;     ///< slots per worker and server
};
/// As asked, else by the shard and by what moves it.
Chunking choose_chunking(const SessionOptions& options, const ParsedOptions& parsed, const ShardMap& map,
                         const TransportChoice& transport);
/// In places of the wire's format.
DataLayout make_layout(const SessionOptions& options, const ParsedOptions& parsed, const ShardMap& map,
                       const Chunking& chunking, std::uint32_t workers);
std::int64_t window_bytes(const DataLayout& layout, std::uint32_t server);
/// Whether this server's shard is small enough for the control messages.
bool travels_inline(const SessionOptions& options, const ShardMap& map, ServerIndex server);

ControllerOptions controller_options(const SessionOptions& options, const ParsedOptions& parsed, std::uint32_t workers);

/// Provenance of this rank's trace file. `group_of_worker`: empty without local groups.
trace::Attributes trace_attributes(const SessionOptions& options, const Roles& roles, const ShardMap& map,
                                   const SyncPlan& plan, const TransportChoice& choice, const GpuChoice& gpu,
                                   const std::vector<std::uint32_t>& group_of_worker);

/// Blocking transfers of any length, cut below INT_MAX.
void send_floats(std::span<const float> values, int rank, int tag, MPI_Comm comm);
void receive_floats(std::span<float> values, int rank, int tag, MPI_Comm comm);

}  // namespace fluentps
