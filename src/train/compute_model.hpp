/// How long an iteration's computing takes where it is given instead of measured, for simulated clusters and studies.
///
///   constant:ms=30            30 ms
///   normal:mean=30,sdev=5     max(0, Normal(30, 5)) ms
///   trace:results/RUN         a compute time of that run, drawn evenly from all its workers and iterations
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fluentps/types.hpp"

namespace fluentps::train {

class ComputeModel {
 public:
  /// Empty `text`: no model. Throws UsageError: unknown model or key, bad value, no trace or one without iterations.
  ComputeModel(const std::string& text, std::uint64_t seed, WorkerIndex worker);

  bool active() const { return kind_ != Kind::kNone; }
  /// Nanoseconds of iteration i on a host of speed 1. Depends on nothing but seed, worker and iteration.
  std::int64_t compute_ns(Iteration i) const;

 private:
  enum class Kind : std::uint8_t { kNone, kConstant, kNormal, kTrace };

  Kind kind_ = Kind::kNone;
  double mean_ms_ = 0;
  double sdev_ms_ = 0;
  std::shared_ptr<const std::vector<std::int64_t>> measured_ns_;
  std::uint64_t seed_;
  WorkerIndex worker_;
};

}  // namespace fluentps::train
