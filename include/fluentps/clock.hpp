/// Time as the run sees it: wall time under mpirun, simulated time on a simulated cluster.
#pragma once

#include <cstdint>

namespace fluentps {

class Clock {
 public:
  virtual ~Clock() = default;
  /// Nanoseconds since the run's common origin (a barrier at start).
  virtual std::int64_t now_ns() const = 0;
  /// Blocks the calling rank outside MPI.
  virtual void sleep_ns(std::int64_t duration_ns) = 0;
  /// How fast this host computes beside the reference host: work of one second takes 1 / speed() seconds. Other than 1
  /// on hosts of a simulated cluster only, where given compute times are divided by it.
  virtual double speed() const { return 1; }
};

}  // namespace fluentps
