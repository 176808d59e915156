#include "apps/train/signals.hpp"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <initializer_list>

#include "fluentps/error.hpp"
#include "net/simulated.hpp"

namespace fluentps::app {
namespace {

// A handler has nothing but globals.
std::atomic<bool> stop{false};
std::atomic<int> ending{0};

void on_signal(int number) {
  if (number == SIGUSR1)
    stop.store(true, std::memory_order_relaxed);
  else
    ending.store(number, std::memory_order_relaxed);
}

}  // namespace

void install_signals() {
  if constexpr (kSimulated) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  // The second one ends a rank that does not come to look, the system's way.
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  for (const int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
}

bool stop_wanted() { return stop.load(std::memory_order_relaxed); }

void end_if_told() {
  const int number = ending.load(std::memory_order_relaxed);
  if (number != 0) throw RunError(fmt::format("ended by {}", number == SIGTERM ? "SIGTERM" : "SIGINT"));
}

}  // namespace fluentps::app
