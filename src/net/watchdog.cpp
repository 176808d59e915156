#include "net/watchdog.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "fluentps/error.hpp"

namespace fluentps {

void Watchdog::watch(std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, limit, [this] { return done_; })) return;
  fmt::print(stderr, "fluentps: {} has not ended after {} s; use {}\n", what_, limit.count(), advice_);
  std::fflush(stderr);
  std::_Exit(kExitUsage);
}

}  // namespace fluentps
