/// Time from MPI_Wtime, which is wall time under mpirun and simulated time on a simulated cluster.
#pragma once

#include <cstdint>

#include "fluentps/clock.hpp"
#include "net/comm.hpp"

namespace fluentps {

class MpiClock : public Clock {
 public:
  /// Origin: now, on this rank only.
  MpiClock();
  /// Collective: the common origin is the end of a barrier; offset_ns() is measured against rank 0.
  void synchronize(MPI_Comm comm);

  std::int64_t now_ns() const override;
  void sleep_ns(std::int64_t duration_ns) override;
  /// On a simulated cluster the host's speed in the platform file, in Gf; else 1.
  double speed() const override;
  /// This rank's now_ns minus rank 0's at the same moment, from the quickest of several message exchanges; 0 on rank 0.
  /// Recorded in the trace, not subtracted from its times.
  std::int64_t offset_ns() const { return offset_ns_; }

 private:
  void measure_offset(MPI_Comm comm);

  double origin_s_ = 0;
  std::int64_t offset_ns_ = 0;
};

}  // namespace fluentps
