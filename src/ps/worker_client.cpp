#include "ps/worker_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "fluentps/error.hpp"
#include "net/simulated.hpp"
#include "ps/worker_call.hpp"

namespace fluentps {
namespace {

/// Between two looks at whether the puts have ended: no message tells.
constexpr std::int64_t kLookAtPuts_ns = 20'000;

}  // namespace

WorkerClient::WorkerClient(const WorkerOptions& options, const ShardMap& map, ControlPort& port, WorkerData& data,
                           Clock& clock, trace::WorkerTrace* trace)
    : options_(options),
      map_(map),
      port_(port),
      data_(data),
      clock_(clock),
      trace_(trace),
      lanes_(map.servers()),
      next_iteration_(options.first_iteration) {
  for (std::uint32_t m = 0; m < map.servers(); ++m) {
    const auto elements = map.shard_size(ServerIndex{m});
    lanes_[m].credits = options.ring;
    lanes_[m].chunks = static_cast<std::uint32_t>(std::max<std::int64_t>(
        1, (elements + options.chunk_elements - 1) / std::max<std::int64_t>(1, options.chunk_elements)));
    reads_ahead_ = reads_ahead_ || lanes_[m].chunks > 1;
    if (options.wire != WireFormat::kFp32)
      lanes_[m].packed.resize(static_cast<std::size_t>(wire_places(options.wire, elements)));
  }
}

/// Worker w starts at server w mod S: with everyone starting at server 0 its link is the bottleneck of all.
ServerIndex WorkerClient::visit(std::uint32_t k) const { return {(options_.index.value + k) % map_.servers()}; }

/// 4 bytes an element, with keys 8 more; a request names its elements by their keys.
std::uint64_t WorkerClient::moved_bytes(std::size_t elements, bool with_request) const {
  if (!options_.keys)
    return static_cast<std::uint64_t>(wire_places(options_.wire, static_cast<std::int64_t>(elements))) * sizeof(float);
  return elements * (sizeof(float) + sizeof(std::uint64_t) * (with_request ? 2 : 1));
}

void WorkerClient::require_ready(std::size_t size, const char* call) const {
  require_call({options_.index, call, initialized_, size, map_.size()});
}

void WorkerClient::initialize(std::span<float> weights) {
  require_first_initialize(options_.index, initialized_);
  initialized_ = true;
  require_ready(weights.size(), "initialize");
  if (options_.index.value == 0 && options_.first_iteration == 0) send_update(weights, MessageKind::kInit, 0);
  request_pull();
  await_pull(weights);
}

void WorkerClient::push(std::span<const float> update) {
  require_ready(update.size(), "push");
  transfer_ = {};
  send_update(update, MessageKind::kPush, options_.central ? kWantAck : 0);
  ++next_iteration_;
}

void WorkerClient::pull(std::span<float> weights) {
  require_ready(weights.size(), "pull");
  ask_scheduler();
  request_pull();
  await_pull(weights);
}

void WorkerClient::push_pull(std::span<const float> update, std::span<float> weights) {
  if (options_.central || options_.keys) {
    push(update);
    pull(weights);
    return;
  }
  require_ready(update.size(), "push_pull");
  require_ready(weights.size(), "push_pull");
  transfer_ = {};
  for (auto& lane : lanes_) lane.begin_pull();
  aim(weights);
  send_update(update, MessageKind::kPush, kWantPull);
  ++next_iteration_;
  await_pull(weights);
}

void WorkerClient::leave() {
  for (std::uint32_t k = 0; k < map_.servers(); ++k)
    port_.send(visit(k).value, {.kind = MessageKind::kLeave, .iteration = next_iteration_});
}

std::vector<trace::WrittenFile> WorkerClient::checkpoint() {
  for (std::uint32_t m = 0; m < lanes_.size(); ++m) {
    lanes_[m].written = false;
    port_.send(m, {.kind = MessageKind::kCheckpoint, .iteration = next_iteration_});
  }
  const auto all_written = [this] {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.written; });
  };
  while (!all_written()) await_message("the servers to write a checkpoint");
  std::vector<trace::WrittenFile> files;
  for (const auto& lane : lanes_) files.push_back(lane.file);
  return files;
}

void WorkerClient::request_stop() {
  if (!std::exchange(stop_requested_, true)) port_.send(0, {.kind = MessageKind::kStop});
}

/// Chunks go to all servers in turn, so that their transfers and the servers' work overlap.
void WorkerClient::send_update(std::span<const float> update, MessageKind kind, std::uint16_t last_flags) {
  const auto begin_ns = clock_.now_ns();
  const auto values = source(update);
  reading_ns_ = 0;
  for (auto& lane : lanes_) {
    lane.next_chunk = 0;
    lane.acked = false;
  }
  const auto all_sent = [this] {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.next_chunk == lane.chunks; });
  };
  while (!all_sent()) {
    if (!send_round(values, kind, last_flags)) await_message("a free slot");
    if (reads_ahead_ && (last_flags & kWantPull) != 0)
      while (const auto message = port_.receive(0)) on_message(*message);
  }
  await_puts();
  transfer_.push_ns += clock_.now_ns() - begin_ns - reading_ns_;
  transfer_.pull_ns += std::exchange(reading_ns_, 0);
  transfer_.bytes += moved_bytes(values.size(), false);
}

/// Until the update may be changed: on a one-sided transport it may be already.
void WorkerClient::await_puts() {
  const auto begin_ns = clock_.now_ns();
  while (!data_.puts_finished()) {
    const auto now_ns = clock_.now_ns();
    if (const auto message = port_.receive(now_ns + kLookAtPuts_ns)) on_message(*message);
    if (options_.poll) options_.poll();
    if (now_ns - begin_ns >= options_.abort_ns) give_up("its push to be received", now_ns - begin_ns);
  }
}

/// One chunk to every server that has a free slot: first all puts, then their completion, so the puts overlap.
bool WorkerClient::send_round(std::span<const float> values, MessageKind kind, std::uint16_t last_flags) {
  bool sent = false;
  const auto ready = [this](ServerIndex server) {
    const auto& lane = lanes_[server.value];
    return lane.next_chunk < lane.chunks && lane.credits > 0;
  };
  for (std::uint32_t k = 0; k < map_.servers(); ++k)
    if (ready(visit(k)) && !options_.inline_data[visit(k).value]) put_chunk(visit(k), values);
  for (std::uint32_t k = 0; k < map_.servers(); ++k)
    if (ready(visit(k))) {
      announce_chunk(visit(k), kind, last_flags, values);
      sent = true;
    }
  return sent;
}

void WorkerClient::put_chunk(ServerIndex server, std::span<const float> values) {
  const auto& lane = lanes_[server.value];
  const auto first = static_cast<std::int64_t>(lane.next_chunk) * options_.chunk_elements;
  const auto count = std::min(options_.chunk_elements, map_.shard_size(server) - first);
  if (options_.wire != WireFormat::kFp32) {
    put_packed(server, values, first, count);
    return;
  }
  std::int64_t at = 0;
  for (const auto& piece : map_.pieces(server, first, count)) {
    if (mirrors_update_) update_mirror_->await(piece.offset, piece.count);
    data_.put(server, lane.next_slot, at,
              values.subspan(static_cast<std::size_t>(piece.offset), static_cast<std::size_t>(piece.count)));
    at += piece.count;
  }
}

/// Chunks have an even number of elements, so each begins at a whole place of the packed shard.
void WorkerClient::put_packed(ServerIndex server, std::span<const float> values, std::int64_t first,
                              std::int64_t count) {
  auto& lane = lanes_[server.value];
  gathered_.clear();
  for (const auto& piece : map_.pieces(server, first, count)) {
    if (mirrors_update_) update_mirror_->await(piece.offset, piece.count);
    gathered_.insert(gathered_.end(), values.begin() + piece.offset, values.begin() + piece.offset + piece.count);
  }
  const auto packed =
      std::span(lane.packed)
          .subspan(static_cast<std::size_t>(first / 2), static_cast<std::size_t>(wire_places(options_.wire, count)));
  pack(options_.wire, gathered_, packed);
  data_.put(server, lane.next_slot, 0, packed);
}

void WorkerClient::announce_chunk(ServerIndex server, MessageKind kind, std::uint16_t last_flags,
                                  std::span<const float> values) {
  auto& lane = lanes_[server.value];
  const bool last = lane.next_chunk + 1 == lane.chunks;
  const int read_ahead = lane.chunks > 1 && (last_flags & kWantPull) != 0 ? kReadAhead : 0;
  Header header{.kind = kind,
                .flags = static_cast<std::uint16_t>((last ? kLastChunk | last_flags : 0) | read_ahead),
                .slot = lane.next_slot,
                .chunk = lane.next_chunk,
                .iteration = next_iteration_,
                .lr = lr_};
  if (last && (last_flags & kWantPull) != 0) lane.request_ns = clock_.now_ns();
  --lane.credits;
  lane.next_slot = (lane.next_slot + 1) % options_.ring;
  ++lane.next_chunk;
  if (!options_.inline_data[server.value]) {
    data_.complete_puts(server);
    port_.send(server.value, header);
    return;
  }
  const auto& slices = map_.slices(server);
  if (slices.size() == 1) {
    port_.send(server.value, header,
               std::as_bytes(values.subspan(static_cast<std::size_t>(slices[0].offset),
                                            static_cast<std::size_t>(slices[0].count))));
    return;
  }
  gathered_.clear();
  for (const auto& slice : slices)
    gathered_.insert(gathered_.end(), values.begin() + slice.offset, values.begin() + slice.offset + slice.count);
  port_.send(server.value, header, std::as_bytes(std::span(gathered_)));
}

void WorkerClient::request_pull() {
  const auto begin_ns = clock_.now_ns();
  for (std::uint32_t k = 0; k < map_.servers(); ++k) {
    auto& lane = lanes_[visit(k).value];
    lane.begin_pull();
    lane.request_ns = clock_.now_ns();
    data_.send_keys(visit(k));
    port_.send(visit(k).value, {.kind = MessageKind::kPull, .iteration = next_iteration_ - 1});
  }
  transfer_.push_ns += clock_.now_ns() - begin_ns;  // keys are put as values are
}

void WorkerClient::ask_scheduler() {
  if (!options_.central || next_iteration_ == options_.first_iteration) return;
  const auto begin_ns = clock_.now_ns();
  const auto all_acked = [this] {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.acked; });
  };
  while (!all_acked()) await_message("acknowledgements of its push");
  may_go_ = false;
  port_.send(0, {.kind = MessageKind::kAsk, .iteration = next_iteration_ - 1});
  while (!may_go_) await_message("the scheduler's barrier");
  transfer_.wait_ns += clock_.now_ns() - begin_ns;
}

/// Weights of a server are fetched from its answer on, while others still hold theirs back. Only when all have answered
/// is a transfer waited for: with a wait at each answer, all workers would read the server that advances first
/// together, then the second, each time at the speed of one server's link.
void WorkerClient::await_pull(std::span<float> weights) {
  aim(weights);
  transfer_.staleness = 0;
  transfer_.delayed_total = 0;
  const auto begin_ns = clock_.now_ns();
  const auto all_answered = [this] {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.reading || lane.pulled; });
  };
  for (read_granted(); !all_answered(); read_granted()) await_message("the answer to its pull");
  const auto answered_ns = clock_.now_ns();
  for (std::uint32_t k = 0; k < map_.servers(); ++k)
    if (lanes_[visit(k).value].reading) finish_lane(visit(k));
  if (!target_.empty()) weights_mirror_->finish();
  transfer_.wait_ns += answered_ns - begin_ns - reading_ns_;
  transfer_.pull_ns += clock_.now_ns() - answered_ns + std::exchange(reading_ns_, 0);
  transfer_.bytes += moved_bytes(weights.size(), true);
  for (const auto& lane : lanes_) {
    transfer_.staleness = std::max(transfer_.staleness, next_iteration_ - 1 - lane.v);
    transfer_.delayed_total += lane.delayed_total;
  }
  into_ = target_ = {};
}

/// Starts the gets of all servers that have answered. A server that wants to hear of their end may hold others back
/// until then, so it hears at once.
void WorkerClient::read_granted() {
  for (std::uint32_t k = 0; k < map_.servers(); ++k) {
    const auto server = visit(k);
    auto& lane = lanes_[server.value];
    if (!lane.granted) continue;
    read_until(server, lane.chunks);
    lane.granted = false;
    lane.reading = true;
  }
  for (std::uint32_t k = 0; k < map_.servers(); ++k) {
    const auto& lane = lanes_[visit(k).value];
    if (lane.reading && (lane.read_inline || lane.ack_wanted)) finish_lane(visit(k));
  }
}

/// Starts the gets of this server's chunks before `chunk`, where they have not been started: one get for each message,
/// as they are offered.
void WorkerClient::read_until(ServerIndex server, std::uint32_t chunk) {
  auto& lane = lanes_[server.value];
  if (chunk <= lane.read || lane.read_inline) return;
  const auto begin_ns = clock_.now_ns();
  const auto first = lane.read * options_.chunk_elements;
  const auto end = std::min(chunk * options_.chunk_elements, map_.shard_size(server));
  lane.read = chunk;
  parts_.clear();
  if (options_.wire != WireFormat::kFp32) {
    parts_.emplace_back(lane.packed);
  } else {
    for (const auto& piece : map_.pieces(server, first, end - first))
      parts_.push_back(into_.subspan(static_cast<std::size_t>(piece.offset), static_cast<std::size_t>(piece.count)));
  }
  data_.get(server, first, parts_);
  reading_ns_ += clock_.now_ns() - begin_ns;
}

void WorkerClient::finish_lane(ServerIndex server) {
  auto& lane = lanes_[server.value];
  if (!lane.read_inline) data_.complete_gets(server);
  if (!lane.read_inline && options_.wire != WireFormat::kFp32) scatter_packed(server);
  if (!target_.empty())
    for (const auto& slice : map_.slices(server)) weights_mirror_->start_writing(target_, slice.offset, slice.count);
  if (lane.ack_wanted) port_.send(server.value, {.kind = MessageKind::kPullDone, .iteration = next_iteration_ - 1});
  lane.reading = false;
  lane.pulled = true;
  if (trace_ == nullptr || next_iteration_ == options_.first_iteration) return;
  trace_->add(trace::WorkerPullRow{.iteration = static_cast<std::uint32_t>(next_iteration_ - 1),
                                   .server = static_cast<std::uint16_t>(server.value),
                                   .request_ns = static_cast<std::uint64_t>(lane.request_ns),
                                   .grant_ns = static_cast<std::uint64_t>(lane.grant_ns),
                                   .done_ns = static_cast<std::uint64_t>(clock_.now_ns()),
                                   .v = static_cast<std::uint32_t>(lane.v)});
}

void WorkerClient::await_message(const char* what) {
  const auto begin_ns = clock_.now_ns();
  auto report_ns = begin_ns + options_.stall_ns;
  auto now_ns = begin_ns;
  while (true) {
    if (const auto message = port_.receive(now_ns + kLookAround_ns)) {
      on_message(*message);
      return;
    }
    now_ns = clock_.now_ns();
    if (options_.poll) options_.poll();
    if (trace_ != nullptr) trace_->maybe_flush(now_ns);
    if (now_ns - begin_ns >= options_.abort_ns) give_up(what, now_ns - begin_ns);
    if (now_ns < report_ns) continue;
    report_ns = now_ns + options_.stall_ns;
    const auto text = fmt::format("stall: {} has waited {:.1f} s for {} ({})\n", options_.name,
                                  static_cast<double>(now_ns - begin_ns) * 1e-9, what, missing_servers());
    std::fputs(text.c_str(), stderr);
  }
}

std::string WorkerClient::missing_servers() const {
  std::string missing;
  for (std::uint32_t m = 0; m < lanes_.size(); ++m)
    if (!lanes_[m].pulled && !lanes_[m].reading) missing += fmt::format("{}server {}", missing.empty() ? "" : ", ", m);
  return fmt::format("iteration {}, no answer yet from: {}", next_iteration_ - 1,
                     missing.empty() ? "none asked" : missing);
}

void WorkerClient::give_up(const char* what, std::int64_t waited_ns) const {
  throw RunError(fmt::format("{} has waited {:.1f} s (--abort-s) for {} ({})", options_.name,
                             static_cast<double>(waited_ns) * 1e-9, what, missing_servers()));
}

void WorkerClient::on_message(const Message& message) {
  auto& lane = lanes_[message.peer];
  lane.credits += message.header.credits;
  switch (message.header.kind) {
    case MessageKind::kCredit:
      if ((message.header.flags & kReadAhead) != 0) read_until(ServerIndex{message.peer}, message.header.chunk);
      return;
    case MessageKind::kAck:
      lane.acked = true;
      return;
    case MessageKind::kGo:
      may_go_ = true;
      return;
    case MessageKind::kGrant:
      on_grant(message);
      return;
    case MessageKind::kCheckpointed:
      lane.written = true;
      lane.file = {static_cast<std::uint64_t>(message.header.v), static_cast<std::uint32_t>(message.header.version)};
      return;
    default:
      throw ProtocolError(fmt::format("{} got a {} from server {}, which only workers send", options_.name,
                                      to_string(message.header.kind), message.peer));
  }
}

void WorkerClient::on_grant(const Message& message) {
  auto& lane = lanes_[message.peer];
  const auto& header = message.header;
  lane.granted = true;
  lane.grant_ns = clock_.now_ns();
  lane.v = header.v;
  lane.delayed_total = header.delayed_total;
  if (header.stop_at > 0) stop_at_ = header.stop_at;
  if ((header.flags & kStopWanted) != 0) request_stop();
  lane.ack_wanted = (header.flags & kAckWanted) != 0;
  if ((header.flags & kDelayed) != 0) ++transfer_.delayed;
  lane.read_inline = options_.inline_data[message.peer];
  if (lane.read_inline) scatter_inline(ServerIndex{message.peer}, message.payload);
}

void WorkerClient::scatter_inline(ServerIndex server, std::span<const std::byte> payload) {
  if (static_cast<std::int64_t>(payload.size()) != map_.shard_size(server) * std::int64_t{sizeof(float)})
    throw ProtocolError(fmt::format("server {} answered with {} bytes; its shard has {} elements", server.value,
                                    payload.size(), map_.shard_size(server)));
  for (const auto& slice : map_.slices(server))
    std::memcpy(into_.data() + slice.offset, payload.data() + slice.shard_offset * std::int64_t{sizeof(float)},
                static_cast<std::size_t>(slice.count) * sizeof(float));
}

void WorkerClient::scatter_packed(ServerIndex server) {
  gathered_.resize(static_cast<std::size_t>(map_.shard_size(server)));
  unpack(options_.wire, lanes_[server.value].packed, gathered_);
  for (const auto& slice : map_.slices(server))
    std::copy_n(gathered_.begin() + slice.shard_offset, slice.count, into_.begin() + slice.offset);
}

}  // namespace fluentps
