#include "net/ending.hpp"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <initializer_list>

#include "fluentps/error.hpp"
#include "net/simulated.hpp"

namespace fluentps {
namespace {

std::atomic<int> ending{0};  // a handler has nothing but globals

void on_signal(int number) { ending.store(number, std::memory_order_relaxed); }

}  // namespace

void install_ending_signals() {
  if constexpr (kSimulated) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  // The second one ends a rank that does not come to look, the system's way.
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  for (const int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
}

void end_if_told() {
  const int number = ending.load(std::memory_order_relaxed);
  if (number != 0) throw RunError(fmt::format("ended by {}", number == SIGTERM ? "SIGTERM" : "SIGINT"));
}

}  // namespace fluentps
