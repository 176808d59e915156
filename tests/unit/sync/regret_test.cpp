/// Regret of stale gradient descent on a convex quadratic: pssp(s,c) behaves as ssp(s+1/c-1), and both keep the bound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "event_simulation.hpp"

namespace fluentps::test {
namespace {

constexpr std::size_t kDimensions = 10;
constexpr std::uint32_t kWorkers = 16;
constexpr Iteration kIterations = 1000;
using Vector = std::array<double, kDimensions>;

double distance_squared(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t j = 0; j < kDimensions; ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return sum;
}

/// Losses f_t(w) = |w - x_t|^2 / 2 with x_t uniform in the unit cube around 0, weights kept in that cube. So with
/// d = kDimensions the gradients are bounded by L = sqrt(d) and |w - w'|^2 / 2 by F^2 = d / 2.
class Descent {
 public:
  /// `staleness`: of the theorem, from which the step follows; `scale`: times that step.
  Descent(std::uint64_t seed, double staleness, double scale)
      : random_(seed),
        step_(scale * std::sqrt(kDimensions / 2.0) / (kLipschitz * std::sqrt(2 * (staleness + 1) * kWorkers))),
        held_(kWorkers, start()),
        weights_(start()) {}

  /// The worker's update, computed from the weights it holds, reaches the server.
  void push(WorkerIndex worker) {
    const auto& held = held_[worker.value];
    samples_.emplace_back();
    for (auto& x : samples_.back()) x = std::uniform_real_distribution<double>(-0.5, 0.5)(random_);
    loss_ += distance_squared(held, samples_.back()) / 2;
    const double rate = step_ / std::sqrt(static_cast<double>(samples_.size()));
    for (std::size_t j = 0; j < kDimensions; ++j)
      weights_[j] = std::clamp(weights_[j] - rate * (held[j] - samples_.back()[j]), -0.5, 0.5);
  }
  void grant(WorkerIndex worker) { held_[worker.value] = weights_; }

  /// (sum of f_t at the weights used - sum of f_t at the best fixed weights) / T
  double average_regret() const {
    Vector best{};
    for (const auto& x : samples_)
      for (std::size_t j = 0; j < kDimensions; ++j) best[j] += x[j] / static_cast<double>(samples_.size());
    double least = 0;
    for (const auto& x : samples_) least += distance_squared(best, x) / 2;
    return (loss_ - least) / static_cast<double>(samples_.size());
  }

 private:
  static Vector start() {
    Vector corner;
    corner.fill(0.5);
    return corner;
  }
  static inline const double kLipschitz = std::sqrt(kDimensions);

  std::mt19937_64 random_;
  double step_;  ///< sigma = F / (L sqrt(2(s+1)N)); step t is sigma / sqrt(t) (Ho et al. 2013, theorem 1)
  std::vector<Vector> held_;
  Vector weights_;
  std::vector<Vector> samples_;
  double loss_ = 0;
};

struct Run {
  std::string sync;
  double staleness = 0;
  double scale = 1;
};

double regret(const Run& run, std::uint64_t seed) {
  Descent descent(seed, run.staleness, run.scale);
  Simulation({.sync = run.sync,
              .workers = kWorkers,
              .iterations = kIterations,
              .seed = seed,
              .straggler = 20,
              .on_push = [&](WorkerIndex worker, Iteration) { descent.push(worker); },
              .on_grant = [&](WorkerIndex worker) { descent.grant(worker); }})
      .run();
  return descent.average_regret();
}

struct Sample {
  double mean = 0;
  double error = 0;  ///< of the mean
};
Sample over_five_seeds(const Run& run) {
  std::array<double, 5> values{};
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = regret(run, k + 1);
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 5;
  double square = 0;
  for (const double value : values) square += (value - mean) * (value - mean);
  return {.mean = mean, .error = std::sqrt(square / 4 / 5)};
}

/// Standard errors between the two.
double separation(const Sample& a, const Sample& b) { return std::abs(a.mean - b.mean) / std::hypot(a.error, b.error); }

TEST(Regret, of_pssp_is_that_of_ssp_with_the_equivalent_bound) {
  // s' = s + 1/c - 1: (3, 1/2) is 4, (3, 1/5) is 7, (3, 1/10) is 12.
  for (const auto& [c, equivalent] : {std::pair{0.5, 4}, std::pair{0.2, 7}, std::pair{0.1, 12}}) {
    for (const double scale : {1.0, 4.0}) {
      const auto pssp = over_five_seeds({fmt::format("pssp:s=3,c={}", c), static_cast<double>(equivalent), scale});
      const auto ssp = over_five_seeds({fmt::format("ssp:s={}", equivalent), static_cast<double>(equivalent), scale});
      EXPECT_LT(separation(pssp, ssp), 2) << pssp.mean << " against " << ssp.mean;
      // 4FL sqrt(2(s'+1)N/T) with FL = d / sqrt(2).
      const double steps = static_cast<double>(kWorkers * kIterations);
      const double bound = 4 * kDimensions / std::sqrt(2.0) * std::sqrt(2 * (equivalent + 1) * kWorkers / steps);
      EXPECT_LT(pssp.mean, bound);
      EXPECT_LT(ssp.mean, bound);
      EXPECT_GT(pssp.mean, 0);
    }
  }
}

/// The measure sees staleness: without any the regret is lower by more than the noise.
TEST(Regret, of_bsp_is_lower) {
  const auto bsp = over_five_seeds({"bsp", 4, 4});
  const auto ssp = over_five_seeds({"ssp:s=4", 4, 4});
  EXPECT_LT(bsp.mean, ssp.mean);
  EXPECT_GT(separation(bsp, ssp), 2);
}

}  // namespace
}  // namespace fluentps::test
