/// Makes chosen workers slow, repeatably.
///
///   every=8,mean_ms=30,sdev_ms=10     workers with index % 8 == 0 sleep max(0, Normal(30, 10)) ms in every iteration
///   worker=2,factor=20                worker 2 computes 20 times slower: sleeps 19 times its own compute time
///   worker=0,mean_ms=5; worker=3,from=100,until=200,mean_ms=50
///
/// Parts are separated by ';', and what they add to one worker is summed. Without `every` and `worker`: all workers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fluentps/types.hpp"

namespace fluentps::train {

class Straggler {
 public:
  /// Throws UsageError: unknown key (gives the nearest), bad value, worker >= workers.
  Straggler(const std::string& text, std::uint64_t seed, std::uint32_t workers, WorkerIndex worker);

  /// Nanoseconds this worker sleeps in iteration i after having computed for `compute_ns`. Depends on nothing but seed,
  /// worker, iteration and, for factor, compute_ns.
  std::int64_t sleep_ns(Iteration i, std::int64_t compute_ns) const;
  /// Whether this worker is ever slowed.
  bool active() const { return !delays_.empty(); }

 private:
  struct Delay {
    double mean_ms = 0;
    double sdev_ms = 0;
    double factor = 1;
    Iteration from = 0;
    Iteration until = 0;
    std::uint64_t part = 0;  ///< position in the text: parts draw independently
  };
  std::vector<Delay> delays_;
  std::uint64_t seed_;
  WorkerIndex worker_;
};

}  // namespace fluentps::train
