/// A controller under test that reports what it decides as short text: "0@2 1@3*", the star marking delayed pulls.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sync/controller.hpp"

namespace fluentps::test {

inline std::string text(const std::vector<Grant>& grants) {
  std::string line;
  for (const auto& grant : grants)
    line += fmt::format("{}{}@{}{}", line.empty() ? "" : " ", grant.worker.value, grant.iteration,
                        grant.delayed ? "*" : "");
  return line;
}

/// Each event returns the grants it gave; a late push begins with "late".
class Desk {
 public:
  Desk(const std::string& sync, std::uint32_t workers, ControllerOptions options = {.release = Release::kSoft})
      : controller_(with(options, workers), SyncPlan(sync, workers, 1), ServerIndex{0}) {}

  std::string push(std::uint32_t worker, Iteration i, std::int64_t now_ns = 0) {
    const bool in_time = controller_.push({worker}, i, now_ns);
    const auto grants = text(controller_.take_grants());
    return in_time ? grants : grants.empty() ? "late" : "late " + grants;
  }
  std::string pull(std::uint32_t worker, Iteration i, std::int64_t now_ns = 0) {
    const bool answered = controller_.pull({worker}, i, now_ns);
    const auto grants = text(controller_.take_grants());
    return answered == grants.empty() ? "return value and grants differ" : grants;
  }
  std::string leave(std::uint32_t worker, std::int64_t now_ns = 0) {
    controller_.leave({worker}, now_ns);
    return text(controller_.take_grants());
  }
  std::string tick(std::int64_t now_ns) {
    controller_.tick(now_ns);
    return text(controller_.take_grants());
  }
  /// Push and pull of one iteration.
  std::string both(std::uint32_t worker, Iteration i, std::int64_t now_ns = 0) {
    const auto pushed = push(worker, i, now_ns);
    const auto pulled = pull(worker, i, now_ns);
    return pushed.empty() || pulled.empty() ? pushed + pulled : pushed + " " + pulled;
  }
  Iteration v() const { return controller_.state().v(); }
  std::string waiting() const { return text(controller_.waiting()); }
  Controller& controller() { return controller_; }
  const SyncState& state() const { return controller_.state(); }

 private:
  static ControllerOptions with(ControllerOptions options, std::uint32_t workers) {
    options.workers = workers;
    return options;
  }
  Controller controller_;
};

inline constexpr ControllerOptions kLazy{.release = Release::kLazy};
inline constexpr ControllerOptions kSoft{.release = Release::kSoft};

}  // namespace fluentps::test
