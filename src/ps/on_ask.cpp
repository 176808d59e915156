/// Central coordination, the behaviour of PS-Lite: a worker whose pushes are all acknowledged asks one scheduler, a
/// second controller on server 0, whether it may pull; it answers by the same conditions, but for all servers at once.
#include <fmt/format.h>

#include "fluentps/error.hpp"
#include "ps/server.hpp"

namespace fluentps {

bool Server::on_ask(WorkerIndex worker, Iteration iteration) {
  if (!scheduler_)
    throw ProtocolError(fmt::format("server {} was asked by worker {} to coordinate, but --coordination is per-server",
                                    options_.index.value, worker.value));
  scheduler_->push(worker, iteration, now_ns_);
  scheduler_->pull(worker, iteration, now_ns_);
  answer_scheduled();
  return true;
}

void Server::answer_scheduled() {
  for (const auto& grant : scheduler_->take_grants())
    send(grant.worker, {.kind = MessageKind::kGo, .iteration = grant.iteration});
}

}  // namespace fluentps
