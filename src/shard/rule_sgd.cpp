/// Stochastic gradient descent, plain and with momentum (formulas: update_rule.hpp).
#include "shard/rules.hpp"

namespace fluentps::rules {
namespace {

class Sgd : public UpdateRule {
 public:
  Sgd(const UpdateRuleOptions& options, std::int64_t n) : n_(n), decay_(static_cast<float>(options.weight_decay)) {}

  void step(std::span<const float> weights, std::span<const float> gradient, double lr,
            std::span<float> update) override {
    require_lengths(n_, weights, gradient, update);
    const float* w = weights.data();
    const float* g = gradient.data();
    float* u = update.data();
    const auto rate = static_cast<float>(-lr);
    const float decay = decay_;  // a local: `u` might alias a member, which would forbid vector code
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n_; ++j) u[j] = rate * (g[j] + decay * w[j]);
  }
  std::vector<std::pair<std::string, std::span<float>>> state() override { return {}; }
  std::vector<std::pair<std::string, double*>> scalars() override { return {}; }

 private:
  std::int64_t n_;
  float decay_;
};

class Momentum : public UpdateRule {
 public:
  Momentum(const UpdateRuleOptions& options, std::int64_t n, bool nesterov)
      : n_(n),
        momentum_(static_cast<float>(options.momentum)),
        decay_(static_cast<float>(options.weight_decay)),
        nesterov_(nesterov),
        velocity_(static_cast<std::size_t>(n)) {}

  void step(std::span<const float> weights, std::span<const float> gradient, double lr,
            std::span<float> update) override {
    require_lengths(n_, weights, gradient, update);
    const float* w = weights.data();
    const float* g = gradient.data();
    float* u = update.data();
    float* v = velocity_.data();
    const auto rate = static_cast<float>(-lr);
    const float momentum = momentum_;  // locals: see Sgd
    const float decay = decay_;
    if (nesterov_) {
#pragma GCC ivdep
      for (std::int64_t j = 0; j < n_; ++j) {
        const float decayed = g[j] + decay * w[j];
        v[j] = momentum * v[j] + decayed;
        u[j] = rate * (decayed + momentum * v[j]);
      }
    } else {
#pragma GCC ivdep
      for (std::int64_t j = 0; j < n_; ++j) {
        v[j] = momentum * v[j] + (g[j] + decay * w[j]);
        u[j] = rate * v[j];
      }
    }
  }
  std::vector<std::pair<std::string, std::span<float>>> state() override { return {{"velocity", velocity_}}; }
  std::vector<std::pair<std::string, double*>> scalars() override { return {}; }

 private:
  std::int64_t n_;
  float momentum_;
  float decay_;
  bool nesterov_;
  std::vector<float> velocity_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_sgd(const UpdateRuleOptions& options, std::int64_t n) {
  return std::make_unique<Sgd>(options, n);
}

std::unique_ptr<UpdateRule> make_momentum(const UpdateRuleOptions& options, std::int64_t n, bool nesterov) {
  return std::make_unique<Momentum>(options, n, nesterov);
}

}  // namespace fluentps::rules
