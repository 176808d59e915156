/// A worker asks for weights, or has read them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fluentps/error.hpp"
#include "ps/server.hpp"

namespace fluentps {

bool Server::on_pull(WorkerIndex worker, Iteration iteration, std::int64_t arrive_ns) {
  if (!initialized_) return false;
  clients_[worker.value].request_ns = arrive_ns;
  controller_.pull(worker, iteration, now_ns_);
  answer_grants();
  return true;
}

bool Server::on_pull_done(WorkerIndex worker) {
  auto& client = clients_[worker.value];
  if (!client.reads_snapshot) return true;
  client.reads_snapshot = false;
  if (--readers_ == 0) wake_ = true;
  return true;
}

void Server::answer_grants() {
  for (const auto& grant : controller_.take_grants()) answer(grant);
}

/// A snapshot may be overwritten while it is read unless the next iteration's sum, which needs a push of this very
/// reader, comes in between.
bool Server::must_acknowledge(Iteration iteration) const {
  using Kind = Aggregation::Kind;
  if (options_.inline_data || iteration < options_.controller.first_iteration) return false;
  const auto now = controller_.model_at(iteration).aggregation().kind;
  const auto next = controller_.model_at(iteration + 1).aggregation().kind;
  if (now == Kind::kOrderedSum) return next != Kind::kOrderedSum;
  return now == Kind::kFirstArrivals;
}

/// Whether chunks of the weights that a pull of `iteration` gets can be told before it is answered: each is final with
/// the sum of its position, and is written again only after this worker's next push.
bool Server::known_ahead(Iteration iteration) const {
  if (options_.inline_data || options_.device != nullptr || path_->passing() || rule_) return false;
  return controller_.model_at(iteration).aggregation().kind == Aggregation::Kind::kOrderedSum &&
         !must_acknowledge(iteration);
}

void Server::offer_ahead(Iteration iteration) {
  const auto applied = ordered_.applied();
  const auto before = std::exchange(offered_, applied);
  if (applied <= before) return;
  for (std::uint32_t w = 0; w < clients_.size(); ++w) {
    if (!clients_[w].reads_ahead) continue;
    send(WorkerIndex{w}, {.kind = MessageKind::kCredit, .flags = kReadAhead, .chunk = applied, .iteration = iteration});
    offer(WorkerIndex{w}, applied);
  }
}

/// Offers the chunks before `chunk` that this worker's pull has not been offered yet.
void Server::offer(WorkerIndex worker, std::uint32_t chunk) {
  auto& client = clients_[worker.value];
  const auto size = static_cast<std::int64_t>(data_.weights().size());
  const auto begin = std::min(client.offered * options_.chunk_elements, size);
  const auto end = std::min(chunk * options_.chunk_elements, size);
  client.offered = chunk;
  data_.offer_weights(worker, begin, end - begin);
}

/// Brings the exposed memory up to date where it is not the shard itself.
void Server::publish() {
  // Version 0 is the initial weights; 1 stands for them, so that they are published too.
  const auto current = version() + 1;
  if (published_ == current) return;
  path_->publish();
  published_ = current;
}

void Server::answer(const Grant& grant) {
  auto& client = clients_[grant.worker.value];
  const auto v = controller_.state().v();
  client.pulled_v = v;
  client.pulled_version = version();
  Header header{.kind = MessageKind::kGrant,
                .iteration = grant.iteration,
                .v = v,
                .version = client.pulled_version,
                .delayed_total = controller_.delayed_pulls(),
                .stop_at = stop_at_.value_or(0)};
  if (options_.stop_wanted && options_.stop_wanted()) header.flags |= kStopWanted;
  if (grant.delayed) header.flags |= kDelayed;
  if (must_acknowledge(grant.iteration)) {
    header.flags |= kAckWanted;
    client.reads_snapshot = true;
    ++readers_;
  }
  statistics_.bytes += weights_.size_bytes();
  ++statistics_.pulls;
  if (grant.delayed) ++statistics_.delayed_pulls;
  if (options_.inline_data) {
    send(grant.worker, header, std::as_bytes(weights_));
  } else {
    publish();
    send(grant.worker, header);
    offer(grant.worker, chunks_);
    client.offered = 0;
    client.reads_ahead = false;
  }
  if (trace_ == nullptr || grant.iteration < options_.controller.first_iteration) return;
  trace_->add(trace::ServerPullRow{.worker = static_cast<std::uint16_t>(grant.worker.value),
                                   .iteration = static_cast<std::uint32_t>(grant.iteration),
                                   .request_ns = static_cast<std::uint64_t>(client.request_ns),
                                   .answer_ns = static_cast<std::uint64_t>(now_ns_),
                                   .v_request = static_cast<std::uint32_t>(grant.v_request),
                                   .v_answer = static_cast<std::uint32_t>(v),
                                   .delayed = static_cast<std::uint8_t>(grant.delayed ? 1 : 0)});
}

}  // namespace fluentps
