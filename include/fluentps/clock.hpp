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
};

}  // namespace fluentps
