#include "apps/train/signals.hpp"

#include <atomic>
#include <csignal>

#include "net/simulated.hpp"

namespace fluentps::app {
namespace {

std::atomic<bool> stop{false};  // a handler has nothing but globals

void on_signal(int) { stop.store(true, std::memory_order_relaxed); }

}  // namespace

void install_stop_signal() {
  if constexpr (kSimulated) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
}

bool stop_wanted() { return stop.load(std::memory_order_relaxed); }

}  // namespace fluentps::app
