/// A worker asks for weights, or has read them.
#include <fmt/format.h>

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
    data_.offer_weights(grant.worker);
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
