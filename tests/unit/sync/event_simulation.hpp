/// Runs the bare controller in simulated time: workers that compute for random times, push, pull and wait; nothing else
/// takes time.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "sync/controller.hpp"

namespace fluentps::test {

struct SimulationOptions {
  std::string sync = "bsp";
  Release release = Release::kSoft;
  std::uint32_t workers = 16;
  Iteration iterations = 2000;
  std::uint64_t seed = 1;
  double straggler = 1;  ///< worker 0 takes this many times as long
  double jitter = 0.25;  ///< standard deviation of the time of one iteration, whose mean is 1
  /// Called when a worker's push of an iteration arrives, before the controller hears of it, and when a pull is
  /// answered.
  std::function<void(WorkerIndex, Iteration)> on_push = [](WorkerIndex, Iteration) {};
  std::function<void(WorkerIndex)> on_grant = [](WorkerIndex) {};
};

struct SimulationResult {
  std::uint64_t delayed_pulls = 0;
  double duration = 0;                   ///< until the last worker is done
  std::vector<Iteration> gaps_at_pause;  ///< i - V of each pull that was delayed
};

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options),
        controller_({.workers = options.workers, .release = options.release, .seed = options.seed},
                    SyncPlan(options.sync, options.workers, 1), ServerIndex{0}),
        random_(options.seed * 7919),
        next_iteration_(options.workers, 0) {}

  SimulationResult run() {
    for (std::uint32_t w = 0; w < options_.workers; ++w) start(w);
    while (!events_.empty()) {
      const auto [time, worker] = events_.top();
      events_.pop();
      now_ = time;
      step(worker);
    }
    result_.delayed_pulls = controller_.delayed_pulls();
    result_.duration = now_;
    return result_;
  }

 private:
  struct Event {
    double time;
    std::uint32_t worker;
    bool operator>(const Event& other) const { return time != other.time ? time > other.time : worker > other.worker; }
  };

  void start(std::uint32_t w) {
    const double mean = w == 0 ? options_.straggler : 1;
    std::normal_distribution<double> noise(1, options_.jitter);
    events_.push({now_ + mean * std::max(0.01, noise(random_)), w});
  }

  void step(std::uint32_t w) {
    const WorkerIndex worker{w};
    const auto i = next_iteration_[w]++;
    const auto now_ns = static_cast<std::int64_t>(now_ * 1e6);
    options_.on_push(worker, i);
    controller_.push(worker, i, now_ns);
    if (!controller_.pull(worker, i, now_ns)) result_.gaps_at_pause.push_back(i - controller_.state().v());
    // A worker that leaves may release others.
    for (auto grants = controller_.take_grants(); !grants.empty(); grants = controller_.take_grants())
      for (const auto& grant : grants) answer(grant, now_ns);
  }

  void answer(const Grant& grant, std::int64_t now_ns) {
    options_.on_grant(grant.worker);
    if (grant.iteration + 1 < options_.iterations)
      start(grant.worker.value);
    else
      controller_.leave(grant.worker, now_ns);
  }

  SimulationOptions options_;
  Controller controller_;
  std::mt19937_64 random_;
  std::vector<Iteration> next_iteration_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0;
  SimulationResult result_;
};

}  // namespace fluentps::test
