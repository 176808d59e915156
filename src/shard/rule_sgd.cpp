/// Stochastic gradient descent, plain and with momentum (formulas: update_rule.hpp).
#include "shard/rules.hpp"

namespace fluentps::rules {
namespace {

class Sgd : public UpdateRule {
 public:
  Sgd(const UpdateRuleOptions& options, std::int64_t n, ShardMemory& memory)
      : memory_(memory), n_(n), decay_(static_cast<float>(options.weight_decay)) {}

  void step(std::span<const float> weights, std::span<const float> gradient, double lr,
            std::span<float> update) override {
    require_lengths(n_, weights, gradient, update);
    const elementwise::Sgd f{.rate = static_cast<float>(-lr), .decay = decay_};
    memory_.run(make_pass(f, update.size(), update.data(), weights.data(), gradient.data()));
  }
  std::vector<std::pair<std::string, std::span<float>>> state() override { return {}; }
  std::vector<std::pair<std::string, double*>> scalars() override { return {}; }

 private:
  ShardMemory& memory_;
  std::int64_t n_;
  float decay_;
};

/// F: elementwise::Momentum or elementwise::Nesterov.
template <typename F>
class WithVelocity : public UpdateRule {
 public:
  WithVelocity(const UpdateRuleOptions& options, std::int64_t n, ShardMemory& memory)
      : memory_(memory),
        n_(n),
        momentum_(static_cast<float>(options.momentum)),
        decay_(static_cast<float>(options.weight_decay)),
        velocity_(memory.allocate(static_cast<std::size_t>(n))) {}

  void step(std::span<const float> weights, std::span<const float> gradient, double lr,
            std::span<float> update) override {
    require_lengths(n_, weights, gradient, update);
    const F f{.momentum = momentum_, .decay = decay_, .rate = static_cast<float>(-lr)};
    memory_.run(make_pass(f, update.size(), update.data(), velocity_.data(), weights.data(), gradient.data()));
  }
  std::vector<std::pair<std::string, std::span<float>>> state() override { return {{"velocity", velocity_}}; }
  std::vector<std::pair<std::string, double*>> scalars() override { return {}; }

 private:
  ShardMemory& memory_;
  std::int64_t n_;
  float momentum_;
  float decay_;
  std::span<float> velocity_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_sgd(const UpdateRuleOptions& options, std::int64_t n, ShardMemory& memory) {
  return std::make_unique<Sgd>(options, n, memory);
}

std::unique_ptr<UpdateRule> make_momentum(const UpdateRuleOptions& options, std::int64_t n, bool nesterov,
                                          ShardMemory& memory) {
  if (nesterov) return std::make_unique<WithVelocity<elementwise::Nesterov>>(options, n, memory);
  return std::make_unique<WithVelocity<elementwise::Momentum>>(options, n, memory);
}

}  // namespace fluentps::rules
