/// Learning-rate schedules: what lr an iteration has.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fluentps/types.hpp"

namespace fluentps {

struct ScheduleOptions {
  /// constant | multistep:at=32000+48000,factor=0.1 | poly:power=2,end=0 | cosine:end=0
  std::string spec = "constant";
  /// "" none | "iterations=500" from lr/k up to lr, k = workers | "iterations=500,k=8" | "iterations=500,from=0.01"
  std::string warmup{};
  double lr = 0.1;            ///< lr0, reached at the end of the warm-up
  Iteration iterations = 0;   ///< of the whole run: where poly and cosine end
  std::uint32_t workers = 1;  ///< N
};

/// Immutable. Before the warm-up's end, at t < W: start + (lr0 - start) t / W (Goyal et al. 2017, 2.2). Then
///   constant   lr0
///   multistep  lr0 factor^(number of `at` with at <= t), `at` counted from the start of the run
///   poly       end + (lr0 - end) (1 - x)^power          x = (t - W) / (iterations - W), at most 1
///   cosine     end + (lr0 - end) (1 + cos(pi x)) / 2     Loshchilov and Hutter 2017, without restarts
class Schedule {
 public:
  virtual ~Schedule() = default;
  virtual double at(Iteration t) const = 0;
};

/// Throws UsageError: unknown schedule (gives the nearest) or key, a value out of range, poly or cosine without the
/// number of iterations.
std::unique_ptr<Schedule> make_schedule(const ScheduleOptions& options);

}  // namespace fluentps
