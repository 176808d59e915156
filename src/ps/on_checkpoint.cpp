/// A checkpoint, and the iteration before which all workers stop.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fluentps/error.hpp"
#include "ps/server.hpp"

namespace fluentps {

/// Worker 0 asks when every worker has its answer to the pull before `iteration`, so all pushes before it are in.
bool Server::on_checkpoint(WorkerIndex worker, Iteration iteration) {
  const auto& state = controller_.state();
  for (std::uint32_t w = 0; w < state.workers(); ++w)
    if (state.progress(WorkerIndex{w}) != iteration || !state.active(WorkerIndex{w}))
      throw ProtocolError(fmt::format("server {} cannot write a checkpoint of iteration {}: worker {} has pushed {}{}",
                                      options_.index.value, iteration, w, state.progress(WorkerIndex{w}),
                                      state.active(WorkerIndex{w}) ? "" : " and left"));
  if (!options_.checkpoint) throw ProtocolError("a checkpoint was asked for, but there is no folder for it");
  arrivals_.apply();  // a group that is not full (softsync)
  const auto written = options_.checkpoint(iteration, this->state());
  last_event_ns_ = clock_.now_ns();
  send(worker, {.kind = MessageKind::kCheckpointed,
                .iteration = iteration,
                .v = static_cast<std::int64_t>(written.bytes),
                .version = written.checksum});
  return true;
}

State Server::state() {
  State state;
  state.arrays.emplace_back("weights", weights_);
  if (rule_) {
    const auto prefix = options_.optimizer->name + "/";
    for (auto& [name, values] : rule_->state()) state.arrays.emplace_back(prefix + name, values);
    for (auto& [name, value] : rule_->scalars()) state.numbers.emplace_back(prefix + name, value);
  }
  return copies_.on_host(path_->memory(), std::move(state));
}

void Server::adopt_state() { copies_.adopt(path_->memory()); }

std::span<const float> Server::weights() {
  return path_->memory().on_host() ? weights_ : state().arrays.front().second;
}

/// The fastest worker may be pushing iteration `fastest` now. Its answer to that, and every answer to the others from
/// now on, names the iteration after it: nobody can have passed it, and everyone hears of it in time.
bool Server::on_stop() {
  if (!stop_at_) stop_at_ = controller_.state().fastest() + 1;
  return true;
}

}  // namespace fluentps
