/// LARS, layer-wise adaptive rate scaling (You, Gitman, Ginsburg 2017, algorithm 1).
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "shard/rules.hpp"

namespace fluentps::rules {
namespace {

/// In double, in eight interleaved sums of fixed order: as fast as vector code, yet the value depends neither on the
/// machine nor on the compiler.
double norm(const float* values, std::int64_t count) {
  constexpr std::int64_t kSums = 8;
  double sums[kSums] = {};
  const std::int64_t whole = count / kSums * kSums;
  for (std::int64_t j = 0; j < whole; j += kSums) {
    for (std::int64_t k = 0; k < kSums; ++k) {
      const double value = values[j + k];
      sums[k] += value * value;
    }
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  for (std::int64_t j = whole; j < count; ++j) sum += static_cast<double>(values[j]) * static_cast<double>(values[j]);
  return std::sqrt(sum);
}

class Lars : public UpdateRule {
 public:
  Lars(const UpdateRuleOptions& options, std::int64_t n, const std::vector<LayerRange>& layers)
      : n_(n), options_(options), layers_(layers), velocity_(static_cast<std::size_t>(n)) {
    if (layers_.empty() && n > 0) layers_.push_back({0, n});
    std::int64_t end = 0;
    for (const auto& layer : layers_) {
      if (layer.offset != end || layer.count < 0) {
        throw std::invalid_argument(fmt::format("layers of LARS leave a gap or overlap at element {}", end));
      }
      end += layer.count;
    }
    if (end != n) throw std::invalid_argument(fmt::format("layers of LARS cover {} of {} elements", end, n));
  }

  void step(std::span<const float> weights, std::span<const float> gradient, double lr,
            std::span<float> update) override {
    require_lengths(n_, weights, gradient, update);
    double momentum = options_.momentum;
    if (options_.momentum_correction && last_lr_ > 0 && lr > 0) momentum *= lr / last_lr_;
    last_lr_ = lr;
    for (const auto& layer : layers_) {
      step_layer(layer, weights.data(), gradient.data(), {lr, static_cast<float>(momentum)}, update.data());
    }
  }
  std::vector<std::pair<std::string, std::span<float>>> state() override { return {{"velocity", velocity_}}; }
  std::vector<std::pair<std::string, double*>> scalars() override { return {{"last_lr", &last_lr_}}; }

 private:
  struct Rates {
    double lr;
    float momentum;
  };

  void step_layer(const LayerRange& layer, const float* weights, const float* gradient, Rates rates, float* update) {
    const float* w = weights + layer.offset;
    const float* g = gradient + layer.offset;
    float* u = update + layer.offset;
    float* v = velocity_.data() + layer.offset;
    const double weight_norm = norm(w, layer.count);
    const double denominator = norm(g, layer.count) + options_.weight_decay * weight_norm;
    // A layer that is all zero (fresh biases) would never move, one without gradient divides by zero. Both get lambda =
    // eta: with the usual lr of 9 and more, an unscaled step would throw the biases far off.
    const bool scaled = weight_norm > 0 && denominator > 0;
    const double lambda = options_.trust_ratio * (scaled ? weight_norm / denominator : 1.0);
    const auto rate = static_cast<float>(rates.lr * lambda);
    const auto decay = static_cast<float>(options_.weight_decay);
#pragma GCC ivdep
    for (std::int64_t j = 0; j < layer.count; ++j) {
      v[j] = rates.momentum * v[j] + rate * (g[j] + decay * w[j]);
      u[j] = -v[j];
    }
  }

  std::int64_t n_;
  UpdateRuleOptions options_;
  std::vector<LayerRange> layers_;
  double last_lr_ = 0;
  std::vector<float> velocity_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_lars(const UpdateRuleOptions& options, std::int64_t n,
                                      const std::vector<LayerRange>& layers) {
  return std::make_unique<Lars>(options, n, layers);
}

}  // namespace fluentps::rules
