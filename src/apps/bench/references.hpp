/// What the machine and the MPI library can do without a parameter server, measured in the same run.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "net/roles.hpp"

namespace fluentps::app {

/// Seconds of one operation on one buffer, the median of several; the slowest rank's where several take part.
struct References {
  double memcpy_one_gbs = 0;  ///< GB/s of one core, bytes read + bytes written
  double memcpy_all_gbs = 0;  ///< all ranks at once, summed
  double triad_one_gbs = 0;   ///< a = b + s*c, bytes read + bytes written
  double triad_all_gbs = 0;
  double put_s = 0;  ///< worker 0 alone: MPI_Put + flush of all n elements, spread over the servers as shards
  double get_s = 0;
  double put_get_all_s = 0;   ///< all workers at once: put, each to memory of its own, flush, get, flush of n elements
  double exchange_s = 0;      ///< all workers put, tell the servers, these add, answer, and all workers get: no chunks
  double pingpong_s = 0;      ///< two-sided: n elements to server 0 and back
  double allreduce_s = 0;     ///< MPI_Allreduce of n float32 among the workers
  double local_update_s = 0;  ///< w += scale*u over n elements on one core
};

/// Collective over roles.job. n: float32. `repeat`: of each measurement.
References measure_references(const Roles& roles, std::int64_t n, int repeat);

}  // namespace fluentps::app
