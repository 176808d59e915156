#include "ps/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "fluentps/error.hpp"
#include "net/simulated.hpp"
#include "ps/chunks.hpp"

namespace fluentps {
namespace {

std::unique_ptr<ShardPath> make_path(const ServerOptions& options, ServerData& data) {
  const auto exposed = data.weights();
  const ShardPathOptions path{
      .wire = options.wire,
      .shard_elements = options.shard_elements < 0 ? static_cast<std::int64_t>(exposed.size()) : options.shard_elements,
      .chunk_elements = options.chunk_elements,
      .workers = options.controller.workers,
      .ring = options.ring,
      .weights = exposed,
      .inbox = data.inbox()};
  if (options.device == nullptr) return make_host_path(path);
  return options.direct ? make_direct_path(path, *options.device) : make_staged_path(path, *options.device);
}

}  // namespace

StalenessScale parse_staleness_scale(std::string_view text) {
  if (text == "none") return StalenessScale::kNone;
  if (text == "inverse") return StalenessScale::kInverse;
  if (text == "dynsgd") return StalenessScale::kDynSgd;
  throw UsageError(fmt::format("unknown staleness scale '{}'; use none, inverse or dynsgd", text));
}

std::string_view to_string(StalenessScale scale) {
  switch (scale) {
    case StalenessScale::kNone:
      return "none";
    case StalenessScale::kInverse:
      return "inverse";
    case StalenessScale::kDynSgd:
      return "dynsgd";
  }
  return "?";
}

Server::Server(const ServerOptions& options, const SyncPlan& plan, ControlPort& port, ServerData& data, Clock& clock,
               trace::ServerTrace* trace)
    : options_(options),
      port_(port),
      data_(data),
      clock_(clock),
      trace_(trace),
      path_(make_path(options, data)),
      weights_(path_->weights()),
      chunks_(chunk_count(static_cast<std::int64_t>(weights_.size()), options.chunk_elements)),
      controller_(options.controller, plan, options.index),
      ordered_(path_->memory(), weights_, options.controller.workers, chunks_, options.chunk_elements, chunks_to_hold(),
               commit(1)),
      arrivals_(path_->memory(), weights_, options.controller.workers, chunks_, options.chunk_elements, commit(1)),
      singles_(path_->memory(), weights_, options.controller.workers, chunks_, options.chunk_elements,
               commit(options.controller.workers)),
      clients_(options.controller.workers),
      initialized_(options.controller.first_iteration > 0) {
  for (auto& client : clients_) client.next_iteration = options.controller.first_iteration;
  if (options.optimizer)
    rule_ = make_update_rule(*options.optimizer, static_cast<std::int64_t>(weights_.size()), options.layers,
                             path_->memory());
  if (options.schedules) scheduler_ = std::make_unique<Controller>(options.controller, plan, options.index);
}

/// Chunks of one worker that may stay in their slots: all where a push fits into the ring, else half, so that the
/// worker puts into the others meanwhile. None where values are overwritten by the next message, or slots are needed to
/// copy to a device ahead.
std::uint32_t Server::chunks_to_hold() const {
  if (options_.inline_data || options_.device != nullptr || path_->passing()) return 0;
  return chunks_ <= options_.ring ? chunks_ : options_.ring / 2;
}

/// With an optimizer, how sums are applied; `steps`: of one iteration, over which its learning rate is spread.
Commit Server::commit(std::uint32_t steps) {
  if (!options_.optimizer) return {};
  return [this, steps](std::span<float> sum, float scale, double lr) {
    auto& memory = path_->memory();
    passes::scale(memory, sum, scale);
    rule_->step(weights_, sum, lr / steps, sum);
    passes::apply(memory, weights_, sum, 1);
  };
}

void Server::run() {
  last_event_ns_ = last_report_ns_ = clock_.now_ns();
  while (!done()) {
    auto deadline_ns = clock_.now_ns() + kLookAround_ns;
    if (const auto model = controller_.deadline_ns()) deadline_ns = std::min(deadline_ns, *model);
    const auto message = port_.receive(deadline_ns);
    if (options_.poll) options_.poll();
    if (message) {
      handle(*message);
    } else {
      tick();
      idle_check(now_ns_);
    }
    if (trace_ != nullptr) trace_->maybe_flush(now_ns_);
  }
}

void Server::tick() {
  now_ns_ = clock_.now_ns();
  const auto before = controller_.state().v();
  controller_.tick(now_ns_);
  note_advances(before);
  answer_grants();
  pump_all();
}

void Server::idle_check(std::int64_t now_ns) {
  const auto idle_ns = now_ns - last_event_ns_;
  if (idle_ns >= options_.abort_ns)
    throw RunError(fmt::format("no worker has sent anything for {:.1f} s (--abort-s)\n{}",
                               static_cast<double>(idle_ns) * 1e-9, describe_state()));
  if (idle_ns < options_.stall_ns || now_ns - last_report_ns_ < options_.stall_ns) return;
  last_report_ns_ = now_ns;
  const auto text = fmt::format("stall: server {} has had no message for {:.1f} s\n{}", options_.index.value,
                                static_cast<double>(idle_ns) * 1e-9, describe_state());
  std::fputs(text.c_str(), stderr);
}

std::string Server::name_of(WorkerIndex worker) const {
  return options_.worker_names.empty() ? fmt::format("worker {}", worker.value) : options_.worker_names[worker.value];
}

std::string Server::describe_state() const {
  constexpr std::size_t kListed = 16;
  const auto& state = controller_.state();
  const auto v = state.v();
  auto text = fmt::format("  V={} ({} of {} active workers have pushed it), condition of {}\n", v, state.count(v),
                          state.active_workers(), controller_.model_at(v).spec());
  std::size_t behind = 0;
  for (std::uint32_t w = 0; w < state.workers(); ++w) {
    if (!state.active(WorkerIndex{w}) || state.progress(WorkerIndex{w}) > v) continue;
    if (++behind <= kListed)
      text += fmt::format("  waited for: {}, which has pushed {} iterations\n", name_of(WorkerIndex{w}),
                          state.progress(WorkerIndex{w}));
  }
  if (behind > kListed) text += fmt::format("  ... and {} more\n", behind - kListed);
  std::size_t listed = 0;
  for (const auto& each : controller_.waiting())
    if (++listed <= kListed)
      text += fmt::format("  waiting: {} for its pull of iteration {} (asked at V={})\n", name_of(each.worker),
                          each.iteration, each.v_request);
  if (!initialized_) text += "  the initial weights have not arrived: worker 0 sends them with initialize()\n";
  return text;
}

void Server::check(const Message& message) const {
  const auto refuse = [&](const std::string& why) {
    throw ProtocolError(fmt::format("server {} refuses a {} of worker {}, iteration {}, chunk {}: {}",
                                    options_.index.value, to_string(message.header.kind), message.peer,
                                    message.header.iteration, message.header.chunk, why));
  };
  if (message.peer >= clients_.size()) refuse(fmt::format("there are {} workers", clients_.size()));
  const auto& header = message.header;
  const bool carries_data = header.kind == MessageKind::kPush || header.kind == MessageKind::kInit;
  if (!carries_data) return;
  if (header.chunk >= chunks_) refuse(fmt::format("a push has {} chunks", chunks_));
  if (header.slot >= options_.ring) refuse(fmt::format("slot {} of a ring of {}", header.slot, options_.ring));
  if (((header.flags & kLastChunk) != 0) != (header.chunk + 1 == chunks_))
    refuse(fmt::format("it is {}marked as the last of {} chunks", (header.flags & kLastChunk) != 0 ? "" : "not ",
                       chunks_));
  const auto wanted = options_.inline_data ? weights_.size_bytes() : 0;
  if (message.payload.size() != wanted)
    refuse(fmt::format("it carries {} bytes where {} were expected", message.payload.size(), wanted));
}

/// Takes the data in at once, whether or not it can be applied yet: on a two-sided transport the sender waits for that.
Server::Queued Server::accept(const Message& message) {
  Queued queued;
  queued.header = message.header;
  queued.arrive_ns = now_ns_;
  if (message.header.kind != MessageKind::kPush && message.header.kind != MessageKind::kInit) return queued;
  queued.values = receive_values(message);
  statistics_.bytes += queued.values.size_bytes();
  return queued;
}

std::span<const float> Server::receive_values(const Message& message) {
  if (options_.inline_data)
    return {reinterpret_cast<const float*>(message.payload.data()), message.payload.size() / sizeof(float)};
  const auto first = static_cast<std::int64_t>(message.header.chunk) * options_.chunk_elements;
  const auto rest = static_cast<std::int64_t>(weights_.size()) - first;
  const auto count = std::clamp<std::int64_t>(rest, 0, options_.chunk_elements);
  const auto places = wire_places(options_.wire, count);
  const auto arrived = data_.receive_chunk(WorkerIndex{message.peer}, message.header.slot, places);
  return path_->bring_in(WorkerIndex{message.peer}, message.header.slot, arrived, count);
}

void Server::handle(const Message& message) {
  now_ns_ = last_event_ns_ = clock_.now_ns();
  check(message);
  const WorkerIndex worker{message.peer};
  auto& client = clients_[message.peer];
  Queued queued = accept(message);
  if (!client.queue.empty() || !process(worker, queued)) {
    const bool in_passing = options_.inline_data || path_->passing();
    if (in_passing && !queued.values.empty()) {
      queued.own_values.assign(queued.values.begin(), queued.values.end());
      queued.values = queued.own_values;
    }
    client.queue.push_back(std::move(queued));
    ++queued_;
    return;
  }
  if (queued_ == 0) {
    wake_ = false;
    return;
  }
  for (auto next = ordered_.successor(worker); next && !clients_[next->value].queue.empty();
       next = ordered_.successor(*next))
    pump(*next);
  if (wake_) pump_all();
}

void Server::pump(WorkerIndex worker) {
  auto& queue = clients_[worker.value].queue;
  while (!queue.empty() && process(worker, queue.front())) {
    queue.pop_front();
    --queued_;
  }
}

void Server::pump_all() {
  do {
    wake_ = false;
    const auto before = queued_;
    for (std::uint32_t w = 0; w < clients_.size() && queued_ > 0; ++w) pump(WorkerIndex{w});
    if (queued_ < before) wake_ = true;
  } while (wake_ && queued_ > 0);
  wake_ = false;
}

bool Server::process(WorkerIndex worker, const Queued& message) {
  switch (message.header.kind) {
    case MessageKind::kInit:
      return on_init(worker, message);
    case MessageKind::kPush:
      return on_push(worker, message);
    case MessageKind::kPull:
      return on_pull(worker, message.header.iteration, message.arrive_ns);
    case MessageKind::kPullDone:
      return on_pull_done(worker);
    case MessageKind::kLeave:
      return on_leave(worker);
    case MessageKind::kAsk:
      return on_ask(worker, message.header.iteration);
    case MessageKind::kCheckpoint:
      return on_checkpoint(worker, message.header.iteration);
    case MessageKind::kStop:
      return on_stop();
    default:
      throw ProtocolError(fmt::format("server {} got a message of kind {} from worker {}, which only servers send",
                                      options_.index.value, static_cast<int>(message.header.kind), worker.value));
  }
}

void Server::send(WorkerIndex worker, Header header, std::span<const std::byte> payload) {
  auto& client = clients_[worker.value];
  header.credits = client.freed_slots;
  client.freed_slots = 0;
  port_.send(worker.value, header, payload);
}

std::uint64_t Server::version() const {
  return immediate_updates_ + ordered_.completed() + arrivals_.completed() + singles_.completed();
}

}  // namespace fluentps
