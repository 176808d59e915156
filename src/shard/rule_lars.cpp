/// LARS, layer-wise adaptive rate scaling (You, Gitman, Ginsburg 2017, algorithm 1).
#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "shard/rules.hpp"

namespace fluentps::rules {
namespace {

class Lars : public UpdateRule {
 public:
  Lars(const UpdateRuleOptions& options, std::int64_t n, const std::vector<LayerRange>& layers, ShardMemory& memory)
      : memory_(memory),
        n_(n),
        options_(options),
        layers_(layers),
        velocity_(memory.allocate(static_cast<std::size_t>(n))) {
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
    // All norms first: on a device they are waited for once.
    std::vector<std::span<const float>> parts;
    for (const auto& layer : layers_) {
      parts.push_back(part(weights, layer));
      parts.push_back(part(gradient, layer));
    }
    const auto norms = memory_.squared_norms(parts);
    for (std::size_t k = 0; k < layers_.size(); ++k) {
      const elementwise::Lars f{
          .momentum = static_cast<float>(momentum),
          .decay = static_cast<float>(options_.weight_decay),
          .rate = static_cast<float>(lr * lambda(std::sqrt(norms[2 * k]), std::sqrt(norms[2 * k + 1])))};
      const auto u = part(update, layers_[k]);
      memory_.run(make_pass(f, u.size(), u.data(), part(velocity_, layers_[k]).data(), parts[2 * k].data(),
                            parts[2 * k + 1].data()));
    }
  }
  std::vector<std::pair<std::string, std::span<float>>> state() override { return {{"velocity", velocity_}}; }
  std::vector<std::pair<std::string, double*>> scalars() override { return {{"last_lr", &last_lr_}}; }

 private:
  template <typename T>
  static std::span<T> part(std::span<T> of, const LayerRange& layer) {
    return of.subspan(static_cast<std::size_t>(layer.offset), static_cast<std::size_t>(layer.count));
  }

  double lambda(double weight_norm, double gradient_norm) const {
    const double denominator = gradient_norm + options_.weight_decay * weight_norm;
    // A layer that is all zero (fresh biases) would never move, one without gradient divides by zero. Both get lambda =
    // eta: with the usual lr of 9 and more, an unscaled step would throw the biases far off.
    const bool scaled = weight_norm > 0 && denominator > 0;
    return options_.trust_ratio * (scaled ? weight_norm / denominator : 1.0);
  }

  ShardMemory& memory_;
  std::int64_t n_;
  UpdateRuleOptions options_;
  std::vector<LayerRange> layers_;
  double last_lr_ = 0;
  std::span<float> velocity_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_lars(const UpdateRuleOptions& options, std::int64_t n,
                                      const std::vector<LayerRange>& layers, ShardMemory& memory) {
  return std::make_unique<Lars>(options, n, layers, memory);
}

}  // namespace fluentps::rules
