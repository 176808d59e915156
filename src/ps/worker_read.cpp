/// The reading half of WorkerClient: asks for weights, gets them as they are offered, puts them where they belong.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fluentps/error.hpp"
#include "ps/worker_client.hpp"

namespace fluentps {

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
