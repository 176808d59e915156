/// Parses and draws compute times.
#include "train/compute_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "fluentps/error.hpp"
#include "text/spec.hpp"
#include "trace/reader.hpp"
#include "train/random.hpp"

namespace fluentps::train {
namespace {

using Times = std::vector<std::int64_t>;

constexpr double kLongestMs = 86'400'000;  // a day
constexpr std::string_view kTracePrefix = "trace:";

/// Read once per process: on a simulated cluster that is once for all workers.
std::shared_ptr<const Times> load_times(const std::string& path) {
  static std::map<std::string, std::weak_ptr<const Times>> loaded;
  auto& slot = loaded[path];
  if (auto times = slot.lock()) return times;
  auto times = std::make_shared<Times>();
  trace::RunData run;
  try {
    run = trace::load_run(path);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("--compute-model: {}", error.what()));
  }
  for (const auto* worker : run.workers())
    for (const auto& row : worker->iterations) times->push_back(static_cast<std::int64_t>(row.compute_ns));
  if (times->empty())
    throw UsageError(fmt::format("--compute-model: the trace {} has no iterations to draw from", path));
  slot = times;
  return times;
}

}  // namespace

ComputeModel::ComputeModel(const std::string& text, std::uint64_t seed, WorkerIndex worker)
    : seed_(seed), worker_(worker) {
  if (text.empty()) return;
  if (text.starts_with(kTracePrefix)) {
    kind_ = Kind::kTrace;
    measured_ns_ = load_times(text.substr(kTracePrefix.size()));
    return;
  }
  Spec spec(text, "--compute-model");
  if (spec.name() == "constant") {
    kind_ = Kind::kConstant;
    mean_ms_ = spec.number("ms", 0, 0, kLongestMs);
  } else if (spec.name() == "normal") {
    kind_ = Kind::kNormal;
    mean_ms_ = spec.number("mean", 0, 0, kLongestMs);
    sdev_ms_ = spec.number("sdev", 0, 0, kLongestMs);
  } else {
    throw UsageError(
        fmt::format("--compute-model: unknown model '{}'; use constant:ms=30, normal:mean=30,sdev=5 or "
                    "trace:FILE",
                    spec.name()));
  }
  if (!spec.words().empty())
    throw UsageError(fmt::format("--compute-model: '{}' is not key=value", spec.words().front()));
  spec.finish();
}

std::int64_t ComputeModel::compute_ns(Iteration i) const {
  Random random{kComputeStream, seed_, worker_.value, static_cast<std::uint64_t>(i)};
  if (kind_ == Kind::kTrace) return (*measured_ns_)[random.below(measured_ns_->size())];
  const double noise_ms = sdev_ms_ > 0 ? sdev_ms_ * random.normal() : 0;
  return std::llround(std::max(0.0, mean_ms_ + noise_ms) * 1e6);
}

}  // namespace fluentps::train
