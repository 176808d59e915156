/// Chooses an update rule by name and checks its options.
#include "shard/update_rule.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "fluentps/error.hpp"
#include "shard/rules.hpp"
#include "text/words.hpp"

namespace fluentps {
namespace {

void require(bool good, const char* option, double value, const char* wanted) {
  if (!good) throw UsageError(fmt::format("--{} is {}, but must be {}", option, value, wanted));
}

void check(const UpdateRuleOptions& options) {
  const auto fraction = [](double value) { return value >= 0 && value < 1; };  // false for NaN
  constexpr double kLargest = 1e30;
  require(fraction(options.momentum), "momentum", options.momentum, "in [0, 1)");
  require(options.weight_decay >= 0 && options.weight_decay < kLargest, "weight-decay", options.weight_decay,
          "0 or more");
  require(options.trust_ratio > 0 && options.trust_ratio < kLargest, "trust-ratio", options.trust_ratio, "above 0");
  require(fraction(options.beta1), "beta1", options.beta1, "in [0, 1)");
  require(fraction(options.beta2), "beta2", options.beta2, "in [0, 1)");
  require(options.epsilon > 0 && options.epsilon < kLargest, "epsilon", options.epsilon, "above 0");
}

class OnHost : public UpdateRule {
 public:
  OnHost(const UpdateRuleOptions& options, std::int64_t n, const std::vector<LayerRange>& layers)
      : rule_(make_update_rule(options, n, layers, memory_)) {}
  void step(std::span<const float> weights, std::span<const float> gradient, double lr,
            std::span<float> update) override {
    rule_->step(weights, gradient, lr, update);
  }
  std::vector<std::pair<std::string, std::span<float>>> state() override { return rule_->state(); }
  std::vector<std::pair<std::string, double*>> scalars() override { return rule_->scalars(); }

 private:
  HostMemory memory_;
  std::unique_ptr<UpdateRule> rule_;
};

}  // namespace

namespace rules {

void require_lengths(std::int64_t n, std::span<const float> weights, std::span<const float> gradient,
                     std::span<const float> update) {
  const auto length = static_cast<std::size_t>(n);
  if (weights.size() == length && gradient.size() == length && update.size() == length) return;
  throw std::invalid_argument(fmt::format("update rule of {} elements called with {} weights, {} gradients, {} updates",
                                          n, weights.size(), gradient.size(), update.size()));
}

}  // namespace rules

std::unique_ptr<UpdateRule> make_update_rule(const UpdateRuleOptions& options, std::int64_t n,
                                             const std::vector<LayerRange>& layers, ShardMemory& memory) {
  check(options);
  if (options.name == "sgd") return rules::make_sgd(options, n, memory);
  if (options.name == "momentum") return rules::make_momentum(options, n, false, memory);
  if (options.name == "nesterov") return rules::make_momentum(options, n, true, memory);
  if (options.name == "adam") return rules::make_adam(options, n, memory);
  if (options.name == "lars") return rules::make_lars(options, n, layers, memory);
  const std::vector<std::string> valid = {"sgd", "momentum", "nesterov", "adam", "lars"};
  throw UsageError(fmt::format("--optimizer: unknown optimizer '{}', did you mean '{}'? Valid: {}", options.name,
                               nearest_name(options.name, valid), join_names(valid)));
}

std::unique_ptr<UpdateRule> make_update_rule(const UpdateRuleOptions& options, std::int64_t n,
                                             const std::vector<LayerRange>& layers) {
  return std::make_unique<OnHost>(options, n, layers);
}

}  // namespace fluentps
