/// Ends the process, exit code 2, where a self-test hangs: a put to a target that makes no progress never returns, and
/// nothing but the end of the process ends it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace fluentps {

class Watchdog {
 public:
  /// `what` has not ended after `limit`; use `advice`.
  Watchdog(std::string what, std::string advice, std::chrono::seconds limit = std::chrono::seconds(30))
      : what_(std::move(what)), advice_(std::move(advice)), thread_([this, limit] { watch(limit); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch(std::chrono::seconds limit);

  std::string what_;
  std::string advice_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace fluentps
