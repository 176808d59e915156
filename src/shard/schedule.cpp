/// Learning-rate schedules (formulas: schedule.hpp).
#include "shard/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "fluentps/error.hpp"
#include "text/spec.hpp"
#include "text/words.hpp"

namespace fluentps {
namespace {

constexpr double kLargestRate = 1e6;
constexpr Iteration kLargestIteration = 1'000'000'000'000;

struct Warmup {
  Iteration iterations = 0;
  double start = 0;
};

/// Rate after the warm-up, as a function of the iteration.
using Decay = std::function<double(Iteration)>;

class WarmedSchedule : public Schedule {
 public:
  WarmedSchedule(double lr, Warmup warmup, Decay decay) : lr_(lr), warmup_(warmup), decay_(std::move(decay)) {}

  double at(Iteration t) const override {
    if (t >= warmup_.iterations) return decay_(t);
    const double part = static_cast<double>(std::max<Iteration>(t, 0)) / static_cast<double>(warmup_.iterations);
    return warmup_.start + (lr_ - warmup_.start) * part;
  }

 private:
  double lr_;
  Warmup warmup_;
  Decay decay_;
};

Warmup parse_warmup(const ScheduleOptions& options) {
  if (options.warmup.empty()) return {};
  Spec spec(options.warmup, "--warmup");
  Warmup warmup;
  if (const auto plain = parse_integer(spec.name())) {
    if (*plain < 0 || *plain > kLargestIteration) {
      throw UsageError(fmt::format("--warmup: {} is not a number of iterations", *plain));
    }
    warmup.iterations = *plain;
  } else if (!spec.name().empty() || !spec.words().empty()) {
    throw UsageError(fmt::format("--warmup: found '{}': write iterations=500,from=0.01", options.warmup));
  }
  warmup.iterations = spec.integer("iterations", warmup.iterations, 0, kLargestIteration);
  const double k = spec.number("k", std::max<double>(options.workers, 1), 1, 1e9);
  if (spec.has("k") && spec.has("from")) {
    throw UsageError(
        fmt::format("--warmup: '{}' has both from and k: give the start value or the divisor of lr", options.warmup));
  }
  warmup.start = spec.number("from", options.lr / k, 0, kLargestRate);
  spec.finish();
  return warmup;
}

Decay parse_multistep(Spec& spec, double lr) {
  auto steps = spec.integers("at");
  const double factor = spec.number("factor", 0.1, 0, kLargestRate);
  if (steps.empty()) throw UsageError("--lr-schedule: multistep needs its iterations: write multistep:at=32000+48000");
  if (!std::is_sorted(steps.begin(), steps.end()) || steps.front() < 0) {
    throw UsageError("--lr-schedule: the iterations of multistep must not be negative and must rise");
  }
  return [steps = std::move(steps), factor, lr](Iteration t) {
    const auto passed = std::upper_bound(steps.begin(), steps.end(), t) - steps.begin();
    return lr * std::pow(factor, static_cast<double>(passed));
  };
}

/// Decay from lr to `end` along shape(x), which falls from 1 at x = 0 to 0 at x = 1.
Decay along(const ScheduleOptions& options, const Warmup& warmup, double end, std::function<double(double)> shape) {
  const Iteration length = options.iterations - warmup.iterations;
  if (length <= 0) {
    throw UsageError(fmt::format("--lr-schedule: {} needs more iterations than the warm-up's {}, found {}",
                                 options.spec, warmup.iterations, options.iterations));
  }
  return [=, lr = options.lr, first = warmup.iterations](Iteration t) {
    const double x = std::min(1.0, static_cast<double>(t - first) / static_cast<double>(length));
    return end + (lr - end) * shape(x);
  };
}

}  // namespace

std::unique_ptr<Schedule> make_schedule(const ScheduleOptions& options) {
  if (!(options.lr >= 0 && options.lr <= kLargestRate)) {
    throw UsageError(fmt::format("--lr is {}, but must be from 0 to {}", options.lr, kLargestRate));
  }
  const Warmup warmup = parse_warmup(options);
  Spec spec(options.spec, "--lr-schedule");
  if (!spec.words().empty()) {
    throw UsageError(
        fmt::format("--lr-schedule: '{}' in '{}' has no value: write key=value", spec.words().front(), options.spec));
  }
  Decay decay;
  if (spec.name() == "constant") {
    decay = [lr = options.lr](Iteration) { return lr; };
  } else if (spec.name() == "multistep") {
    decay = parse_multistep(spec, options.lr);
  } else if (spec.name() == "poly") {
    const double power = spec.number("power", 2, 0, 100);
    decay = along(options, warmup, spec.number("end", 0, 0, kLargestRate),
                  [power](double x) { return std::pow(1 - x, power); });
  } else if (spec.name() == "cosine") {
    decay = along(options, warmup, spec.number("end", 0, 0, kLargestRate),
                  [](double x) { return 0.5 * (1 + std::cos(std::numbers::pi * x)); });
  } else {
    const std::vector<std::string> valid = {"constant", "multistep", "poly", "cosine"};
    throw UsageError(fmt::format("--lr-schedule: unknown schedule '{}', did you mean '{}'? Valid: {}", spec.name(),
                                 nearest_name(spec.name(), valid), join_names(valid)));
  }
  spec.finish();
  return std::make_unique<WarmedSchedule>(options.lr, warmup, std::move(decay));
}

}  // namespace fluentps
