/// A worker pushes no more: the conditions count without it from now on.
#include <algorithm>

#include "ps/server.hpp"

namespace fluentps {

bool Server::on_leave(WorkerIndex worker) {
  const auto& state = controller_.state();
  const auto v = state.v();
  const auto mode = controller_.model_at(v).aggregation();
  const auto others = state.active_workers() - 1;
  if (mode.kind == Aggregation::Kind::kFirstArrivals || mode.kind == Aggregation::Kind::kGroups) {
    // With fewer workers the sum may be complete as it is; it is applied before the clock, which counts the same,
    // moves.
    if (arrivals_.open() > 0) return false;
    const auto wanted = std::min(mode.count, std::max(others, 1U));
    if (arrivals_.complete(wanted)) {
      if (readers_ > 0) return false;
      arrivals_.apply();
    }
  }
  on_pull_done(worker);
  ordered_.leave(worker, clients_[worker.value].next_iteration);
  free_used();
  controller_.leave(worker, now_ns_);
  note_advances(v);
  answer_grants();
  if (scheduler_) {
    scheduler_->leave(worker, now_ns_);
    answer_scheduled();
  }
  wake_ = true;
  return true;
}

}  // namespace fluentps
