/// A convex problem with a known optimum: f(w) = 1/2 sum_j a_j (w_j - w*_j)^2, with noisy gradients.
///
///   quadratic:params=1000,noise=0.1,condition=10,compute_ms=0
///
/// a_j falls from 1 to 1/condition; w* is standard normal by seed, w starts at 0; each worker's gradient carries normal
/// noise of standard deviation noise/sqrt(batch size) per element, by (seed, worker, iteration). f(w*) = 0, so the loss
/// is the suboptimality.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "text/spec.hpp"
#include "train/makers.hpp"
#include "train/random.hpp"

namespace fluentps::train {
namespace {

constexpr std::int64_t kMostParams = 1'000'000'000;

class Quadratic : public Problem {
 public:
  Quadratic(const ProblemOptions& options, Clock& clock) : options_(options), clock_(clock) {
    Spec spec(options.model, "--model");
    n_ = spec.count("params", 1000, 1, kMostParams);
    noise_ = spec.number("noise", 0.1, 0, 1e6) / std::sqrt(std::max<double>(options.batch_size, 1));
    condition_ = spec.number("condition", 10, 1, 1e12);
    compute_ns_ = static_cast<std::int64_t>(spec.number("compute_ms", 0, 0, 1e9) * 1e6);
    spec.finish();
    curvature_.resize(static_cast<std::size_t>(n_));
    optimum_.resize(curvature_.size());
    Random random{kWeightStream, options.seed};
    for (std::size_t j = 0; j < optimum_.size(); ++j) {
      const double part = n_ > 1 ? static_cast<double>(j) / static_cast<double>(n_ - 1) : 0;
      curvature_[j] = static_cast<float>(std::pow(condition_, -part));
      optimum_[j] = static_cast<float>(random.normal());
    }
  }

  std::vector<TensorSpec> tensors() const override { return {{"w", {n_}}}; }

  void initial_weights(std::span<float> weights) override { std::fill(weights.begin(), weights.end(), 0.0F); }

  double gradient(std::span<const float> weights, Iteration i, std::span<float> gradient) override {
    Random random{kNoiseStream, options_.seed, options_.worker.value, static_cast<std::uint64_t>(i)};
    double loss = 0;
    for (std::size_t j = 0; j < optimum_.size(); ++j) {
      const double error = static_cast<double>(weights[j]) - static_cast<double>(optimum_[j]);
      const double slope = static_cast<double>(curvature_[j]) * error;
      loss += 0.5 * slope * error;
      gradient[j] = static_cast<float>(noise_ > 0 ? slope + noise_ * random.normal() : slope);
    }
    if (compute_ns_ > 0) clock_.sleep_ns(compute_ns_);
    return loss;
  }

  std::optional<Evaluation> evaluate(std::span<const float> weights) override {
    double loss = 0;
    for (std::size_t j = 0; j < optimum_.size(); ++j) {
      const double error = static_cast<double>(weights[j]) - static_cast<double>(optimum_[j]);
      loss += 0.5 * static_cast<double>(curvature_[j]) * error * error;
    }
    return Evaluation{loss, std::numeric_limits<double>::quiet_NaN()};
  }

  Iteration iterations_per_epoch() const override { return 0; }

  std::string description() const override {
    return fmt::format("quadratic, {} parameters, condition {}, gradient noise {:.3g}", n_, condition_, noise_);
  }

 private:
  ProblemOptions options_;
  Clock& clock_;
  std::int64_t n_ = 0;
  double noise_ = 0;
  double condition_ = 1;
  std::int64_t compute_ns_ = 0;
  std::vector<float> curvature_;  // a
  std::vector<float> optimum_;    // w*
};

}  // namespace

std::unique_ptr<Problem> make_quadratic(const ProblemOptions& options, Clock& clock) {
  return std::make_unique<Quadratic>(options, clock);
}

}  // namespace fluentps::train
