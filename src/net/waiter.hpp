/// How a rank waits for a message: spinning for latency, yielding and then sleeping where ranks exceed cores.
#pragma once

#include <cstdint>
#include <string_view>

namespace fluentps {

/// spin: never gives the core away. yield: sched_yield between tests. sleep: short spin, then naps. auto: spin, yield
/// and nap in this order, later where every rank has a core of its own.
enum class WaitPolicy : std::uint8_t { kAuto, kSpin, kYield, kSleep };
WaitPolicy parse_wait_policy(std::string_view text);  ///< throws UsageError
std::string_view to_string(WaitPolicy policy);

class Waiter {
 public:
  /// `crowded`: more ranks than cores on this node. `test_yields`: the test yields by itself (mpi_yield.hpp).
  Waiter(WaitPolicy policy, bool crowded, bool test_yields);
  /// Between two tests that found nothing. `waited_ns`: how long this wait has lasted.
  void pause(std::int64_t waited_ns) const;
  /// Whether pause would return at once, so that reading the clock each time is worth saving.
  bool spins(std::int64_t waited_ns) const { return waited_ns < spin_ns_; }

 private:
  std::int64_t spin_ns_ = 0;   ///< spin up to here
  std::int64_t yield_ns_ = 0;  ///< then yield up to here, then nap
  bool test_yields_ = false;
};

}  // namespace fluentps
