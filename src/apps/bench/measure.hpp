/// Times push+pull through a real session.
#pragma once

#include <string>
#include <vector>

#include "fluentps/session.hpp"

namespace fluentps::app {

struct Measurement {
  std::int64_t parameters = 0;
  int repeat = 0;
  double seconds = 0;                                     ///< of `repeat` iterations, the slowest worker's
  std::vector<double> latencies_s;                        ///< of every iteration of every worker
  double push_share = 0, wait_share = 0, pull_share = 0;  ///< of the workers' time
  std::string transport;

  double iterations_per_s() const { return seconds > 0 ? repeat / seconds : 0; }
  double percentile_s(double percent) const;
};

/// Collective over MPI_COMM_WORLD. One untimed tenth of `repeat` iterations first. Complete on worker 0's rank only.
Measurement measure_push_pull(const SessionOptions& options, std::int64_t parameters, int repeat);

}  // namespace fluentps::app
