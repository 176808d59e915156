/// A chunk of an update, or of the initial weights, has arrived.
#include <fmt/format.h>

#include <algorithm>

#include "fluentps/error.hpp"
#include "ps/server.hpp"

namespace fluentps {

bool Server::on_init(WorkerIndex worker, const Queued& message) {
  const auto& header = message.header;
  if (worker.value != 0 || initialized_)
    throw ProtocolError(fmt::format("server {} refuses initial weights of worker {}: {}", options_.index.value,
                                    worker.value, initialized_ ? "they were set before" : "worker 0 sends them"));
  const auto first = static_cast<std::size_t>(header.chunk) * static_cast<std::size_t>(options_.chunk_elements);
  passes::store(path_->memory(), weights_.subspan(std::min(first, weights_.size()), message.values.size()),
                message.values);
  if ((header.flags & kLastChunk) != 0) {
    initialized_ = true;
    wake_ = true;
  }
  done_with(worker, header);
  return true;
}

bool Server::on_push(WorkerIndex worker, const Queued& message) {
  if (!initialized_) return false;
  auto& client = clients_[worker.value];
  const auto& header = message.header;
  if (!controller_.state().active(worker) || header.iteration != client.next_iteration ||
      header.chunk != client.next_chunk)
    throw ProtocolError(
        fmt::format("server {} refuses chunk {} of the push of iteration {} by worker {}: {}", options_.index.value,
                    header.chunk, header.iteration, worker.value,
                    controller_.state().active(worker)
                        ? fmt::format("chunk {} of iteration {} is next", client.next_chunk, client.next_iteration)
                        : "it has left"));
  const bool last = (header.flags & kLastChunk) != 0;
  const auto sums = arrivals_.completed() + singles_.completed();
  const auto taken = take({.worker = worker,
                           .iteration = header.iteration,
                           .index = header.chunk,
                           .first = static_cast<std::int64_t>(header.chunk) * options_.chunk_elements,
                           .values = message.values,
                           .last = last,
                           .factor = staleness_factor(client),
                           .lr = header.lr});
  if (taken == Taken::kBlocked) return false;
  if (arrivals_.completed() + singles_.completed() != sums) wake_ = true;  // the next sum is open to all
  client.next_chunk = last ? 0 : header.chunk + 1;
  if (last) ++client.next_iteration;
  if (taken == Taken::kHeld) {
    client.in_use.push_back(header);
    if ((header.flags & kReadAhead) != 0) client.reads_ahead = known_ahead(header.iteration);
    free_used();
    offer_ahead(header.iteration);
  } else {
    free_used();
    done_with(worker, header);
  }
  if (last) push_complete(worker, message, taken == Taken::kDropped);
  return true;
}

Taken Server::take(const UpdateChunk& chunk) {
  const auto& state = controller_.state();
  const auto mode = controller_.model_at(chunk.iteration).aggregation();
  const bool writable = readers_ == 0;
  if (mode.kind != Aggregation::Kind::kOrderedSum) ordered_.let_go(chunk.worker);
  switch (mode.kind) {
    case Aggregation::Kind::kImmediate: {
      if (rule_) return singles_.take(chunk, 1, writable);
      if (!writable) return Taken::kBlocked;
      const auto first = std::min(static_cast<std::size_t>(chunk.first), weights_.size());
      passes::apply(path_->memory(), weights_.subspan(first, chunk.values.size()), chunk.values,
                    chunk.factor / static_cast<float>(state.workers()));
      if (chunk.last) ++immediate_updates_;
      return Taken::kTaken;
    }
    case Aggregation::Kind::kOrderedSum:
      // Snapshots of the iteration before are read without acknowledgement where it was ordered too: its readers are
      // done when they push again. Where it was not, readers_ says so.
      return writable ? ordered_.take(chunk) : Taken::kBlocked;
    case Aggregation::Kind::kFirstArrivals:
      if (chunk.iteration < state.v()) return Taken::kDropped;
      if (chunk.iteration > state.v()) return Taken::kBlocked;
      return arrivals_.take(chunk, std::min(mode.count, state.active_workers()), writable);
    case Aggregation::Kind::kGroups:
      return arrivals_.take(chunk, std::min(mode.count, state.active_workers()), writable);
  }
  return Taken::kBlocked;
}

void Server::push_complete(WorkerIndex worker, const Queued& message, bool dropped) {
  auto& client = clients_[worker.value];
  const auto& header = message.header;
  const auto before = controller_.state().v();
  const bool in_time = controller_.push(worker, header.iteration, now_ns_);
  const auto staleness = static_cast<std::uint64_t>(std::max<Iteration>(0, header.iteration - client.pulled_v));
  ++statistics_.pushes;
  if (dropped) ++statistics_.dropped_pushes;
  statistics_.staleness_sum += static_cast<double>(staleness);
  statistics_.staleness_max = std::max(statistics_.staleness_max, staleness);
  const std::int64_t applied_ns = clock_.now_ns();
  if (trace_ != nullptr)
    trace_->add(trace::PushRow{.worker = static_cast<std::uint16_t>(worker.value),
                               .iteration = static_cast<std::uint32_t>(header.iteration),
                               .arrive_ns = static_cast<std::uint64_t>(message.arrive_ns),
                               .applied_ns = dropped ? 0 : static_cast<std::uint64_t>(applied_ns),
                               .bytes = weights_.size_bytes(),
                               .staleness = static_cast<std::uint32_t>(staleness),
                               .late = static_cast<std::uint8_t>(in_time ? 0 : 1)});
  now_ns_ = applied_ns;
  note_advances(before);
  if ((header.flags & kWantAck) != 0) send(worker, {.kind = MessageKind::kAck, .iteration = header.iteration});
  if ((header.flags & kWantPull) != 0)
    on_pull(worker, header.iteration, message.arrive_ns);
  else
    answer_grants();
}

void Server::note_advances(Iteration from) {
  const auto v = controller_.state().v();
  if (v == from) return;
  wake_ = true;
  if (trace_ == nullptr) return;
  for (auto reached = from + 1; reached <= v; ++reached)
    trace_->add(
        trace::AdvanceRow{.v = static_cast<std::uint32_t>(reached), .time_ns = static_cast<std::uint64_t>(now_ns_)});
}

float Server::staleness_factor(const Client& client) const {
  const auto tau = static_cast<float>(version() - client.pulled_version);
  switch (options_.staleness_scale) {
    case StalenessScale::kNone:
      return 1;
    case StalenessScale::kInverse:
      return 1 / std::max(tau, 1.0F);
    case StalenessScale::kDynSgd:
      return 1 / (tau + 1);
  }
  return 1;
}

/// Where the sum holds chunks, their slots are free when it has used them.
void Server::free_used() {
  while (const auto worker = ordered_.next_used()) {
    auto& in_use = clients_[worker->value].in_use;
    const auto header = in_use.front();
    in_use.pop_front();
    done_with(*worker, header);
  }
}

/// On a device the next chunk's copy starts before this one's has been waited for; a push's end waits for all, so that
/// no worker ever waits for a slot that is held back.
void Server::done_with(WorkerIndex worker, const Header& header) {
  if (!options_.inline_data) path_->used(worker, header.slot);
  used_.push_back({worker, header});
  const std::size_t kept = (header.flags & kLastChunk) != 0 ? 0 : path_->freed_later();
  while (used_.size() > kept) {
    const auto oldest = used_.front();
    used_.pop_front();
    if (!options_.inline_data) path_->free_slot(oldest.worker, oldest.header.slot);
    return_credit(oldest.worker, oldest.header);
  }
}

/// Credits travel with the next message to this worker; one of their own is sent only where the worker may be waiting
/// for slots: in the middle of a push longer than the ring, or after a push that asks for no pull.
void Server::return_credit(WorkerIndex worker, const Header& header) {
  auto& client = clients_[worker.value];
  ++client.freed_slots;
  const bool last = (header.flags & kLastChunk) != 0;
  if (last && (header.flags & (kWantPull | kWantAck)) != 0) return;
  if (!last && chunks_ <= options_.ring) return;
  if (client.reads_ahead && ordered_.applied() > client.offered) return;  // with the offer that follows
  if (!last && client.freed_slots < std::max(1U, options_.ring / 2)) return;
  send(worker, {.kind = MessageKind::kCredit});
}

}  // namespace fluentps
