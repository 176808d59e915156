#include "ps/worker_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "fluentps/error.hpp"
#include "net/simulated.hpp"
#include "ps/chunks.hpp"
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
    lanes_[m].chunks = chunk_count(elements, options.chunk_elements);
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
  require_ready(update.size(), "push_pull");
  require_ready(weights.size(), "push_pull");
  require_apart(options_.index, update, weights);
  if (options_.central || options_.keys) {
    push(update);
    pull(weights);
    return;
  }
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
  auto wait = begin_wait("its push to be received");
  while (!data_.puts_finished()) hear(wait, kLookAtPuts_ns);
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

WorkerClient::Wait WorkerClient::begin_wait(const char* what) const {
  const auto now_ns = clock_.now_ns();
  return {.what = what, .begin_ns = now_ns, .now_ns = now_ns, .report_ns = now_ns + options_.stall_ns};
}

void WorkerClient::await_message(const char* what) {
  auto wait = begin_wait(what);
  while (!hear(wait, kLookAround_ns)) {
  }
}

/// Handles one message, if any comes within `look_ns`. Where none does: the rest of what a rank has to look after.
bool WorkerClient::hear(Wait& wait, std::int64_t look_ns) {
  if (const auto message = port_.receive(wait.now_ns + look_ns)) {
    on_message(*message);
    return true;
  }
  wait.now_ns = clock_.now_ns();
  if (options_.poll) options_.poll();
  if (trace_ != nullptr) trace_->maybe_flush(wait.now_ns);
  const auto waited_ns = wait.now_ns - wait.begin_ns;
  if (waited_ns >= options_.abort_ns) give_up(wait.what, waited_ns);
  if (wait.now_ns < wait.report_ns) return false;
  wait.report_ns = wait.now_ns + options_.stall_ns;
  const auto text = fmt::format("stall: {} has waited {:.1f} s for {} ({})\n", options_.name,
                                static_cast<double>(waited_ns) * 1e-9, wait.what, missing_servers());
  std::fputs(text.c_str(), stderr);
  return false;
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

}  // namespace fluentps
