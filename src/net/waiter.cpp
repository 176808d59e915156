#include "net/waiter.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "fluentps/error.hpp"
#include "net/simulated.hpp"

namespace fluentps {
namespace {

constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMicrosecond = 1000;
constexpr std::int64_t kMillisecond = 1000 * kMicrosecond;
constexpr std::int64_t kShortestNap_us = 50;
constexpr std::int64_t kLongestNap_us = 500;

}  // namespace

WaitPolicy parse_wait_policy(std::string_view text) {
  if (text == "auto") return WaitPolicy::kAuto;
  if (text == "spin") return WaitPolicy::kSpin;
  if (text == "yield") return WaitPolicy::kYield;
  if (text == "sleep") return WaitPolicy::kSleep;
  throw UsageError(fmt::format("unknown wait policy '{}'; use auto, spin, yield or sleep", text));
}

std::string_view to_string(WaitPolicy policy) {
  switch (policy) {
    case WaitPolicy::kAuto:
      return "auto";
    case WaitPolicy::kSpin:
      return "spin";
    case WaitPolicy::kYield:
      return "yield";
    case WaitPolicy::kSleep:
      return "sleep";
  }
  return "?";
}

Waiter::Waiter(WaitPolicy policy, bool crowded, bool test_yields) : test_yields_(test_yields) {
  if (kSimulated) return;  // naps only: spinning takes no simulated time, so it would never end
  switch (policy) {
    case WaitPolicy::kSpin:
      spin_ns_ = yield_ns_ = kForever;
      break;
    case WaitPolicy::kYield:
      yield_ns_ = kForever;
      break;
    case WaitPolicy::kSleep:
      spin_ns_ = yield_ns_ = 5 * kMicrosecond;
      break;
    case WaitPolicy::kAuto:
      // With a core each, a spinning rank takes nothing from anyone; a crowded one would spin away the time slice in
      // which the rank it waits for could answer.
      spin_ns_ = crowded ? 0 : 20 * kMillisecond;
      yield_ns_ = crowded ? kMillisecond : 100 * kMillisecond;
      break;
  }
}

void Waiter::pause(std::int64_t waited_ns) const {
  if (waited_ns < spin_ns_) return;
  if (waited_ns < yield_ns_) {
    if (!test_yields_) ::sched_yield();
    return;
  }
  // A nap in proportion to the wait so far delays an answer by a few per cent at most.
  const auto nap_us = std::clamp((waited_ns - yield_ns_) / (20 * kMicrosecond), kShortestNap_us, kLongestNap_us);
  ::usleep(static_cast<useconds_t>(nap_us));
}

}  // namespace fluentps
