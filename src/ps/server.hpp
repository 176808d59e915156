/// One server: its shard, its controller, and what it does on each message. Knows no MPI: the network is behind
/// ControlPort and ServerData, so tests drive it with a fake one. One file per event:
///   on_push.cpp  on_pull.cpp  on_leave.cpp  on_ask.cpp  on_checkpoint.cpp     (server.cpp: the loop and the queues)
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fluentps/clock.hpp"
#include "fluentps/state.hpp"
#include "fluentps/types.hpp"
#include "net/message.hpp"
#include "ps/arrival_sum.hpp"
#include "ps/ordered_sum.hpp"
#include "shard/shard_path.hpp"
#include "shard/state_copies.hpp"
#include "shard/update_rule.hpp"
#include "shard/wire_format.hpp"
#include "sync/controller.hpp"
#include "trace/checkpoint_file.hpp"
#include "trace/writer.hpp"

namespace fluentps {

/// How late gradients are scaled, tau = updates applied to the shard between the worker's pull and this push.
///   none 1    inverse 1/max(tau,1) (Zhang et al. 2016)    dynsgd 1/(tau+1) (Jiang et al. 2017)
enum class StalenessScale : std::uint8_t { kNone, kInverse, kDynSgd };
StalenessScale parse_staleness_scale(std::string_view text);  ///< throws UsageError
std::string_view to_string(StalenessScale scale);

struct ServerOptions {
  ServerIndex index;
  std::vector<std::string> worker_names;  ///< of local groups, for messages; empty: "worker 0" and so on
  std::int64_t chunk_elements = 0;        ///< float32 in one slot
  std::uint32_t ring = 4;                 ///< slots per worker
  std::int64_t shard_elements = -1;       ///< float32 of this shard; -1: as many as the data plane exposes
  WireFormat wire = WireFormat::kFp32;
  bool inline_data = false;  ///< the shard travels inside the control messages; not with a device
  Device* device = nullptr;  ///< where the shard lies, outlives the server; null: in the host's memory
  bool direct = false;       ///< the data plane's memory lies on the device too
  bool schedules = false;    ///< central coordination: this server also runs the global barrier
  StalenessScale staleness_scale = StalenessScale::kNone;
  std::int64_t stall_ns = 30'000'000'000;  ///< report when no message came for so long
  std::int64_t abort_ns = 60'000'000'000;  ///< give up when no message came for so long
  ControllerOptions controller;  ///< first_iteration > 0: resumed, weights and optimizer are set before the start
  /// The workers push gradients and this server makes one step per aggregate; none: it adds update/N.
  std::optional<UpdateRuleOptions> optimizer;
  std::vector<LayerRange> layers;  ///< of the shard, for lars
  /// Writes state() as of this iteration. Unset: checkpoints are refused.
  std::function<trace::WrittenFile(Iteration, const State&)> checkpoint;
  std::function<bool()> stop_wanted;  ///< this rank has been told to stop; may be unset
  std::function<void()> poll;         ///< called at every message, and while there is none; may throw to end the run
};

/// What a server tells at the end.
struct ServerStatistics {
  std::uint64_t pushes = 0, pulls = 0, delayed_pulls = 0, dropped_pushes = 0, bytes = 0;
  double staleness_sum = 0;
  std::uint64_t staleness_max = 0;
};

class Server {
 public:
  /// References outlive the server; `trace` may be null.
  Server(const ServerOptions& options, const SyncPlan& plan, ControlPort& port, ServerData& data, Clock& clock,
         trace::ServerTrace* trace);

  /// Serves until every worker has left. Throws RunError when nothing arrives for abort_ns, ProtocolError on a message
  /// that breaks the protocol.
  void run();

  /// One message, and all that becomes possible by it. `run` calls it; tests do.
  void handle(const Message& message);
  /// What only time changes (partial:timeout_ms).
  void tick();
  bool done() const { return controller_.state().active_workers() == 0; }

  /// The shard, float32, as of now; of a device, a copy that is valid until the next call.
  std::span<const float> weights();
  /// The shard as "weights", and the optimizer's state under its name, such as "momentum/velocity"; of a device,
  /// copies.
  State state();
  /// The arrays of the last state() have been changed: takes them over.
  void adopt_state();

  const ServerStatistics& statistics() const { return statistics_; }
  const Controller& controller() const { return controller_; }
  /// Who waits for whom: V, progress and waiting pulls, for the stall report.
  std::string describe_state() const;
  std::string name_of(WorkerIndex worker) const;

 private:
  /// A message that cannot be processed yet waits here, and everything of its worker behind it.
  struct Queued {
    Header header;
    std::int64_t arrive_ns = 0;
    std::span<const float> values;  ///< in the inbox
    std::vector<float> own_values;  ///< what lies in a buffer that the next message overwrites is copied
  };
  struct Client {
    std::deque<Queued> queue;
    std::uint32_t next_chunk = 0;   ///< of the push under way
    Iteration next_iteration = 0;   ///< of the next push
    std::uint32_t freed_slots = 0;  ///< credits to be sent
    std::deque<Header> in_use;      ///< of the chunks taken whose slots are still read
    bool reads_ahead = false;       ///< the chunks of its next weights, while it pushes
    std::uint32_t offered = 0;      ///< chunks of these
    bool reads_snapshot = false;    ///< granted with kAckWanted, not yet done
    std::uint64_t pulled_version = 0;
    Iteration pulled_v = 0;
    std::int64_t request_ns = 0;  ///< of the pull under way
  };

  Queued accept(const Message& message);
  std::span<const float> receive_values(const Message& message);
  void check(const Message& message) const;
  bool process(WorkerIndex worker, const Queued& message);
  void pump(WorkerIndex worker);
  void pump_all();

  // on_push.cpp
  bool on_init(WorkerIndex worker, const Queued& message);
  bool on_push(WorkerIndex worker, const Queued& message);
  Taken take(const UpdateChunk& chunk);
  void push_complete(WorkerIndex worker, const Queued& message, bool dropped);
  float staleness_factor(const Client& client) const;
  void done_with(WorkerIndex worker, const Header& header);
  void free_used();
  std::uint32_t chunks_to_hold() const;
  void return_credit(WorkerIndex worker, const Header& header);
  void note_advances(Iteration from);
  // on_pull.cpp
  bool on_pull(WorkerIndex worker, Iteration iteration, std::int64_t arrive_ns);
  bool on_pull_done(WorkerIndex worker);
  void answer_grants();
  void answer(const Grant& grant);
  bool must_acknowledge(Iteration iteration) const;
  bool known_ahead(Iteration iteration) const;
  void offer_ahead(Iteration iteration);
  void offer(WorkerIndex worker, std::uint32_t chunk);
  void publish();
  // on_leave.cpp
  bool on_leave(WorkerIndex worker);
  // on_ask.cpp
  bool on_ask(WorkerIndex worker, Iteration iteration);
  void answer_scheduled();
  // on_checkpoint.cpp
  bool on_checkpoint(WorkerIndex worker, Iteration iteration);
  bool on_stop();

  void send(WorkerIndex worker, Header header, std::span<const std::byte> payload = {});
  void idle_check(std::int64_t now_ns);
  std::uint64_t version() const;
  Commit commit(std::uint32_t steps);

  ServerOptions options_;
  ControlPort& port_;
  ServerData& data_;
  Clock& clock_;
  trace::ServerTrace* trace_;
  std::unique_ptr<ShardPath> path_;
  std::span<float> weights_;
  std::uint64_t published_ = 0;  ///< version that the exposed memory holds, where it is not the shard itself
  std::uint32_t chunks_;         ///< of one push
  Controller controller_;
  std::unique_ptr<Controller> scheduler_;
  OrderedSum ordered_;
  ArrivalSum arrivals_;
  ArrivalSum singles_;  ///< with an optimizer: pushes that are applied on arrival, as sums of one
  std::unique_ptr<UpdateRule> rule_;
  std::vector<Client> clients_;
  struct Used {
    WorkerIndex worker;
    Header header;
  };
  std::deque<Used> used_;  ///< slots whose values have been used, and that are not free yet
  StateCopies copies_;
  std::uint32_t offered_ = 0;  ///< chunks of the sum under way that have been offered
  std::uint32_t queued_ = 0;   ///< messages in all queues
  std::uint32_t readers_ = 0;  ///< snapshots being read
  bool initialized_ = false;
  std::optional<Iteration> stop_at_;  ///< on server 0: all workers stop before this iteration
  bool wake_ = false;                 ///< something changed that any queue may have waited for
  std::uint64_t immediate_updates_ = 0;
  std::int64_t now_ns_ = 0;  ///< of the event being handled
  std::int64_t last_event_ns_ = 0;
  std::int64_t last_report_ns_ = 0;
  ServerStatistics statistics_;
};

}  // namespace fluentps
