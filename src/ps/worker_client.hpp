/// The worker's half of the protocol, over ControlPort and WorkerData; knows no MPI.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fluentps/clock.hpp"
#include "fluentps/worker.hpp"
#include "net/message.hpp"
#include "shard/host_mirror.hpp"
#include "shard/shard_map.hpp"
#include "shard/wire_format.hpp"
#include "trace/checkpoint_file.hpp"
#include "trace/writer.hpp"

namespace fluentps {

struct WorkerOptions {
  WorkerIndex index;                 ///< among those that push and pull: workers, or local groups
  std::string name = "this worker";  ///< "worker 3", "group 1 (workers 2, 3)"
  std::uint32_t workers = 1;
  std::int64_t chunk_elements = 0;
  std::uint32_t ring = 4;
  std::vector<bool> inline_data;  ///< by server: its shard travels inside the control messages
  WireFormat wire = WireFormat::kFp32;
  Device* device = nullptr;       ///< buffers given may lie on it; outlives the client; null: all lie on the host
  bool direct = false;            ///< the data plane moves the device's memory itself (fp32 only; else by the host)
  bool keys = false;              ///< 64-bit keys move with the values; counted in the bytes
  bool central = false;           ///< ask the scheduler on server 0 between push and pull
  Iteration first_iteration = 0;  ///< more than 0 in a resumed run: the servers have their weights already
  std::function<bool()> stop_wanted = {};  ///< this rank has been told to stop; may be unset
  std::function<void()> poll = {};         ///< called while waiting; may throw to end the run
  std::int64_t stall_ns = 30'000'000'000;
  std::int64_t abort_ns = 60'000'000'000;
};

class WorkerClient final : public Worker {
 public:
  /// References outlive the client; `trace` may be null.
  WorkerClient(const WorkerOptions& options, const ShardMap& map, ControlPort& port, WorkerData& data, Clock& clock,
               trace::WorkerTrace* trace);

  WorkerIndex index() const override { return options_.index; }
  std::uint32_t workers() const override { return options_.workers; }
  std::int64_t parameters() const override { return map_.size(); }
  Iteration iteration() const override { return next_iteration_; }
  void initialize(std::span<float> weights) override;
  void push(std::span<const float> update) override;
  void pull(std::span<float> weights) override;
  void push_pull(std::span<const float> update, std::span<float> weights) override;
  void set_lr(double lr) override { lr_ = lr; }
  void request_stop() override;
  Iteration stop_at() const override { return stop_at_; }
  const Transfer& last_transfer() const override { return transfer_; }

  /// Of worker 0, when every worker has its answer to the last pull: has the servers write their shards, waits for it,
  /// and returns what they wrote, by server.
  std::vector<trace::WrittenFile> checkpoint();

  /// Tells every server that no push will follow.
  void leave();

 private:
  /// What is under way with one server.
  struct Lane {
    std::uint32_t chunks = 1;  ///< of one push
    std::uint32_t next_chunk = 0;
    std::uint32_t credits = 0;  ///< free slots of the ring
    std::uint32_t read = 0;     ///< chunks whose gets have been started
    std::uint32_t next_slot = 0;
    bool acked = false;
    bool granted = false;  ///< the answer is here, weights are not yet asked for
    bool reading = false;  ///< weights are under way
    bool pulled = true;
    bool read_inline = false;
    bool ack_wanted = false;
    bool written = false;  ///< a checkpoint
    trace::WrittenFile file;
    std::int64_t request_ns = 0;
    std::int64_t grant_ns = 0;
    Iteration v = 0;
    std::uint64_t delayed_total = 0;
    std::vector<float> packed;  ///< the shard in the wire's format, where that is another

    void begin_pull() {
      pulled = granted = false;
      read = 0;
    }
  };

  /// A wait under way.
  struct Wait {
    const char* what;
    std::int64_t begin_ns;
    std::int64_t now_ns;     ///< when it was last looked at
    std::int64_t report_ns;  ///< when it is worth a word to the user
  };

  void require_ready(std::size_t size, const char* call) const;
  void send_update(std::span<const float> update, MessageKind kind, std::uint16_t last_flags);
  void await_puts();
  bool send_round(std::span<const float> values, MessageKind kind, std::uint16_t last_flags);
  void put_chunk(ServerIndex server, std::span<const float> values);
  void put_packed(ServerIndex server, std::span<const float> values, std::int64_t first, std::int64_t count);
  void announce_chunk(ServerIndex server, MessageKind kind, std::uint16_t last_flags, std::span<const float> values);
  void ask_scheduler();
  Wait begin_wait(const char* what) const;
  bool hear(Wait& wait, std::int64_t look_ns);
  void await_message(const char* what);
  void on_message(const Message& message);
  [[noreturn]] void give_up(const char* what, std::int64_t waited_ns) const;
  std::string missing_servers() const;
  ServerIndex visit(std::uint32_t k) const;
  // worker_read.cpp
  void request_pull();
  void await_pull(std::span<float> weights);
  void on_grant(const Message& message);
  void read_until(ServerIndex server, std::uint32_t chunk);
  void read_granted();
  void finish_lane(ServerIndex server);
  void scatter_inline(ServerIndex server, std::span<const std::byte> payload);
  void scatter_packed(ServerIndex server);
  // worker_buffers.cpp
  bool passes_host(const float* buffer) const;
  std::span<const float> source(std::span<const float> values);
  void aim(std::span<float> weights);
  std::unique_ptr<HostMirror> make_mirror() const;
  std::uint64_t moved_bytes(std::size_t elements, bool with_request) const;

  WorkerOptions options_;
  const ShardMap& map_;
  ControlPort& port_;
  WorkerData& data_;
  Clock& clock_;
  trace::WorkerTrace* trace_;
  std::vector<Lane> lanes_;
  bool reads_ahead_ = false;  ///< a push has several chunks somewhere, so weights may be offered before the answer
  std::vector<std::span<float>> parts_;                         ///< of a get
  std::int64_t reading_ns_ = 0;                                 ///< time in gets, of the exchange under way
  std::vector<float> gathered_;                                 ///< an inline chunk whose pieces are scattered
  std::span<float> into_;                                       ///< of the pull under way
  std::unique_ptr<HostMirror> update_mirror_, weights_mirror_;  ///< of buffers on a device, made when first used
  bool mirrors_update_ = false;                                 ///< the push under way is of update_mirror_
  std::span<float> target_;                                     ///< on the device, where into_ is weights_mirror_
  Iteration next_iteration_;
  Iteration stop_at_ = kNever;
  bool stop_requested_ = false;
  double lr_ = 0;
  bool initialized_ = false;
  bool may_go_ = false;  ///< central coordination
  Transfer transfer_;
};

}  // namespace fluentps
