/// The control messages between workers and servers: a fixed header, and for small shards the data itself.
///
///   worker -> server   kInit kPush kPull kPullDone kLeave kAsk kCheckpoint kStop
///   server -> worker   kCredit kGrant kAck kGo kCheckpointed
///   in a local group   kMeet (member -> leader)   kMet kPulled (leader -> member)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fluentps/types.hpp"

namespace fluentps {

enum class MessageKind : std::uint16_t {
  kInit = 1,      ///< a chunk of the initial weights lies in slot `slot`
  kPush,          ///< chunk `chunk` of the update of `iteration` lies in slot `slot`, or follows inline
  kPull,          ///< asks for the weights after the own push of `iteration`
  kPullDone,      ///< the granted weights have been read (asked for by kAckWanted)
  kLeave,         ///< this worker pushes no more
  kAsk,           ///< central coordination: all pushes of `iteration` are acknowledged, may I go on?
  kCredit,        ///< `credits` slots of your ring are free again; with kReadAhead, the first `chunk` chunks of the
                  ///< weights are those that your pull of `iteration` will get: read them now
  kGrant,         ///< your pull of `iteration` is answered: read the weights now, or find them inline
  kAck,           ///< central coordination: your push of `iteration` is applied
  kGo,            ///< central coordination: go on
  kCheckpoint,    ///< every worker has pushed all before `iteration` and waits: write the shard
  kCheckpointed,  ///< it is written: `v` bytes with the checksum `version`
  kStop,          ///< to server 0: find the iteration before which all workers can stop
  kMeet,          ///< this member is at `iteration` and about to do what `slot` names (ps/group_worker.cpp)
  kMet,           ///< all members are, and about to do the same
  kPulled         ///< the leader has the weights, its payload tells of the pull; the broadcast follows
};
std::string_view to_string(MessageKind kind);

enum MessageFlag : std::uint16_t {
  kLastChunk = 1,    ///< kInit, kPush: completes it
  kWantPull = 2,     ///< kPush, last chunk: is a kPull too
  kAckWanted = 4,    ///< kGrant: answer with kPullDone
  kDelayed = 8,      ///< kGrant: it was a delayed pull
  kWantAck = 16,     ///< kPush, last chunk: answer with kAck once it is applied
  kStopWanted = 32,  ///< kGrant, kMeet: this rank has been told to stop; its workers ask server 0 when
  kReadAhead = 64    ///< kPush: chunks of the weights may be offered before the pull is answered; kCredit: they are
};

struct Header {
  MessageKind kind{};
  std::uint16_t flags = 0;
  std::uint32_t credits = 0;  ///< server -> worker: slots freed, piggybacked on any kind
  std::uint32_t slot = 0;
  std::uint32_t chunk = 0;
  std::int64_t iteration = 0;
  std::int64_t v = 0;               ///< kGrant: the server's clock
  std::uint64_t version = 0;        ///< kGrant: updates applied to the shard
  std::uint64_t delayed_total = 0;  ///< kGrant: delayed pulls of this server so far, for the progress line
  double lr = 0;                    ///< kPush: learning rate of this gradient, for an optimizer on the server
  std::int64_t stop_at = 0;         ///< kGrant: all workers stop before this iteration; 0: not known
};
static_assert(sizeof(Header) == 64);

/// Largest payload that travels inside a control message, bytes.
inline constexpr std::size_t kMaxInlineBytes = 2048;

/// A received message. `payload` is valid until the next receive.
struct Message {
  std::uint32_t peer = 0;  ///< index of the sender in its communicator
  Header header;
  std::span<const std::byte> payload;
};

/// The control plane as one rank sees it: to all ranks of the other role, or all of a local group. FIFO per pair.
class ControlPort {
 public:
  virtual ~ControlPort() = default;
  /// Buffered: returns at once. `payload` at most kMaxInlineBytes.
  virtual void send(std::uint32_t peer, const Header& header, std::span<const std::byte> payload = {}) = 0;
  /// The next message, waiting for it until `deadline_ns` (of the run's clock); nullopt when none came.
  virtual std::optional<Message> receive(std::int64_t deadline_ns) = 0;
};

/// The data plane of a server: its shard and the inbox rings of its workers.
class ServerData {
 public:
  virtual ~ServerData() = default;
  /// The shard, float32; workers read it when granted.
  virtual std::span<float> weights() = 0;
  /// The rings of all workers; empty where they are not kept in one piece.
  virtual std::span<float> inbox() { return {}; }
  /// Makes `count` float32 that `worker` put into `slot` readable here. Called once for each announced chunk, in order.
  virtual std::span<const float> receive_chunk(WorkerIndex worker, std::uint32_t slot, std::int64_t count) = 0;
  /// Called with every message that tells `worker` to read `count` elements of the shard from `first` on, after it is
  /// sent.
  virtual void offer_weights(WorkerIndex worker, std::int64_t first, std::int64_t count) = 0;
};

/// The data plane of a worker. Offsets and counts in float32; out of range throws RangeError and moves nothing.
class WorkerData {
 public:
  virtual ~WorkerData() = default;
  /// Puts `values` at `offset` of this worker's `slot` at `server`. `values` stays untouched until finish_puts.
  virtual void put(ServerIndex server, std::uint32_t slot, std::int64_t offset, std::span<const float> values) = 0;
  /// Before the message that announces a chunk: from then on the server can receive it.
  virtual void complete_puts(ServerIndex server) = 0;
  /// At the end of a push: whether the buffers of all puts may be changed. To be called until they may.
  virtual bool puts_finished() = 0;
  /// Before the message that asks for a pull. Nothing but with PS-Lite's keys, which name every element asked for.
  virtual void send_keys(ServerIndex) {}
  /// Starts reading elements of the server's shard, from `offset` on, into one part after the other: as many as one
  /// message has offered, in the order of the messages.
  virtual void get(ServerIndex server, std::int64_t offset, std::span<const std::span<float>> parts) = 0;
  /// All gets from this server have arrived.
  virtual void complete_gets(ServerIndex server) = 0;
};

}  // namespace fluentps
