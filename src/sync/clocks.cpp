/// The clocks of one server.
#include "sync/clocks.hpp"

#include <algorithm>

#include "sync/coin.hpp"

namespace fluentps {

Clocks::Clocks(std::uint32_t workers, std::uint64_t coin_seed, Iteration first)
    : window_(first),
      progress_(workers, first),
      active_(workers, 1),
      active_workers_(workers),
      fastest_(first),
      coin_seed_(mix64(coin_seed)) {}

std::optional<std::int64_t> Clocks::first_push_ns() const {
  if (!begun() || window_[v()].pushes == 0) return std::nullopt;
  return window_[v()].first_ns;
}

double Clocks::coin(WorkerIndex worker, Iteration iteration) const {
  return to_unit(mix64(mix64(coin_seed_ ^ worker.value) ^ static_cast<std::uint64_t>(iteration)));
}

bool Clocks::push(WorkerIndex worker) {
  const auto i = progress_[worker.value]++;
  fastest_ = std::max(fastest_, i + 1);
  if (i < v()) return false;
  window_.reach(i);
  auto& slot = window_[i];
  if (slot.pushes++ == 0) slot.first_ns = now_ns_;
  return true;
}

void Clocks::leave(WorkerIndex worker) {
  active_[worker.value] = 0;
  --active_workers_;
  const auto reached = progress_[worker.value];
  for (auto i = v(); i < reached; ++i) ++window_[i].departed;
  if (reached < fastest_) return;
  Iteration fastest = 0;
  for (std::uint32_t w = 0; w < workers(); ++w)
    if (active_workers_ == 0 || active_[w] != 0) fastest = std::max(fastest, progress_[w]);
  fastest_ = fastest;
}

}  // namespace fluentps
