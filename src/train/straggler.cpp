/// Parses and draws the delays of stragglers.
#include "train/straggler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fluentps/error.hpp"
#include "text/spec.hpp"
#include "text/words.hpp"
#include "train/random.hpp"

namespace fluentps::train {
namespace {

constexpr double kLongestMs = 86'400'000;  // a day
constexpr Iteration kNever = std::numeric_limits<Iteration>::max();

}  // namespace

Straggler::Straggler(const std::string& text, std::uint64_t seed, std::uint32_t workers, WorkerIndex worker)
    : seed_(seed), worker_(worker) {
  std::uint64_t number = 0;
  for (const auto part : split(text, ';')) {
    if (part.empty()) continue;
    Spec spec(part, "--straggler");
    if (!spec.name().empty() || !spec.words().empty()) {
      throw UsageError(
          fmt::format("--straggler: '{}' is not key=value: write every=8,mean_ms=30,sdev_ms=10 or "
                      "worker=2,factor=20",
                      part));
    }
    const auto every = spec.integer("every", 1, 1, std::numeric_limits<std::uint32_t>::max());
    const auto only = spec.integer("worker", -1, 0, std::int64_t{workers} - 1);
    Delay delay{.mean_ms = spec.number("mean_ms", 0, 0, kLongestMs),
                .sdev_ms = spec.number("sdev_ms", 0, 0, kLongestMs),
                .factor = spec.number("factor", 1, 1, 1e6),
                .from = spec.integer("from", 0, 0, kNever),
                .until = spec.integer("until", kNever, 0, kNever),
                .part = number++};
    spec.finish();
    if (spec.has("every") && spec.has("worker")) {
      throw UsageError(fmt::format("--straggler: '{}' has both every and worker: separate them by ';'", part));
    }
    if (delay.mean_ms == 0 && delay.sdev_ms == 0 && !spec.has("factor")) {
      throw UsageError(fmt::format("--straggler: '{}' delays nobody: give mean_ms or factor", part));
    }
    const bool chosen = only >= 0 ? only == worker.value : worker.value % every == 0;
    if (chosen) delays_.push_back(delay);
  }
}

std::int64_t Straggler::sleep_ns(Iteration i, std::int64_t compute_ns) const {
  double total_ns = 0;
  for (const auto& delay : delays_) {
    if (i < delay.from || i >= delay.until) continue;
    double ms = delay.mean_ms;
    if (delay.sdev_ms > 0) {
      Random random{kStragglerStream, seed_, worker_.value, static_cast<std::uint64_t>(i), delay.part};
      ms = std::max(0.0, ms + delay.sdev_ms * random.normal());
    }
    total_ns += ms * 1e6 + (delay.factor - 1) * static_cast<double>(compute_ns);
  }
  return std::llround(total_ns);
}

}  // namespace fluentps::train
