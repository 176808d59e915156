/// A stand-in that computes nothing: parameters of a given size or of a given network, and a sleep.
///
///   synthetic:params=61M,compute_ms=30,sdev_ms=3        synthetic:resnet56,compute_ms=200
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fluentps/error.hpp"
#include "text/spec.hpp"
#include "train/makers.hpp"
#include "train/random.hpp"

namespace fluentps::train {
namespace {

constexpr std::int64_t kMostParams = 100'000'000'000;
/// Not 0, so that weights move; an update rule that works in place cannot shrink it to denormals: see fill_once.
constexpr float kGradient = 1e-6F;

class Synthetic : public Problem {
 public:
  Synthetic(const ProblemOptions& options, Clock& clock) : options_(options), clock_(clock) {
    Spec spec(options.model, "--model");
    if (spec.words().size() > 1) {
      throw UsageError(fmt::format("--model: '{}' names {} networks: give one", options.model, spec.words().size()));
    }
    const bool sized = spec.has("params");
    const std::int64_t n = spec.count("params", 1'000'000, 1, kMostParams);
    if (spec.words().empty()) {
      tensors_ = {{"synthetic", {n}}};
    } else if (sized) {
      throw UsageError(fmt::format("--model: '{}' has both a network and params: give one", options.model));
    } else {
      tensors_ = network_tensors(spec.words().front());
    }
    mean_ms_ = spec.number("compute_ms", 0, 0, 1e9);
    sdev_ms_ = spec.number("sdev_ms", 0, 0, 1e9);
    spec.finish();
  }

  std::vector<TensorSpec> tensors() const override { return tensors_; }

  void initial_weights(std::span<float> weights) override { std::fill(weights.begin(), weights.end(), 0.0F); }

  double gradient(std::span<const float>, Iteration i, std::span<float> gradient) override {
    fill_once(gradient);
    if (const double sleep = static_cast<double>(sleep_ns(i)) / clock_.speed(); sleep > 0)
      clock_.sleep_ns(std::llround(sleep));
    return 0;
  }

  std::optional<Evaluation> evaluate(std::span<const float>) override { return std::nullopt; }
  Iteration iterations_per_epoch() const override { return 0; }

  bool moves_weights() const override { return false; }

  std::string description() const override {
    const std::int64_t n = std::accumulate(tensors_.begin(), tensors_.end(), std::int64_t{0},
                                           [](std::int64_t sum, const TensorSpec& t) { return sum + t.size(); });
    return fmt::format("synthetic, {} parameters in {} tensors, computes for {} ms (sdev {} ms)", n, tensors_.size(),
                       mean_ms_, sdev_ms_);
  }

 private:
  /// Costs nothing while the caller leaves the buffer alone.
  static void fill_once(std::span<float> gradient) {
    if (gradient.empty() || (gradient.front() == kGradient && gradient.back() == kGradient)) return;
    std::fill(gradient.begin(), gradient.end(), kGradient);
  }

  std::int64_t sleep_ns(Iteration i) const {
    double ms = mean_ms_;
    if (sdev_ms_ > 0) {
      Random random{kNoiseStream, options_.seed, options_.worker.value, static_cast<std::uint64_t>(i)};
      ms = std::max(0.0, ms + sdev_ms_ * random.normal());
    }
    return std::llround(ms * 1e6);
  }

  ProblemOptions options_;
  Clock& clock_;
  std::vector<TensorSpec> tensors_;
  double mean_ms_ = 0;
  double sdev_ms_ = 0;
};

}  // namespace

std::unique_ptr<Problem> make_synthetic(const ProblemOptions& options, Clock& clock) {
  return std::make_unique<Synthetic>(options, clock);
}

}  // namespace fluentps::train
