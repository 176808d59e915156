/// Adam (Kingma and Ba 2015) with L2 weight decay, in the order of operations of torch.optim.Adam.
#include <cmath>

#include "shard/rules.hpp"

namespace fluentps::rules {
namespace {

class Adam : public UpdateRule {
 public:
  Adam(const UpdateRuleOptions& options, std::int64_t n)
      : n_(n), options_(options), first_(static_cast<std::size_t>(n)), second_(static_cast<std::size_t>(n)) {}

  void step(std::span<const float> weights, std::span<const float> gradient, double lr,
            std::span<float> update) override {
    require_lengths(n_, weights, gradient, update);
    steps_ += 1;
    const auto beta1 = static_cast<float>(options_.beta1);
    const auto beta2 = static_cast<float>(options_.beta2);
    const auto rest1 = static_cast<float>(1 - options_.beta1);
    const auto rest2 = static_cast<float>(1 - options_.beta2);
    const auto decay = static_cast<float>(options_.weight_decay);
    const auto epsilon = static_cast<float>(options_.epsilon);
    const auto rate = static_cast<float>(-lr / (1 - std::pow(options_.beta1, steps_)));
    const auto root_correction = static_cast<float>(std::sqrt(1 - std::pow(options_.beta2, steps_)));
    const float* w = weights.data();
    const float* g = gradient.data();
    float* u = update.data();
    float* m1 = first_.data();
    float* m2 = second_.data();
#pragma GCC ivdep
    for (std::int64_t j = 0; j < n_; ++j) {
      const float decayed = g[j] + decay * w[j];
      m1[j] = beta1 * m1[j] + rest1 * decayed;
      m2[j] = beta2 * m2[j] + rest2 * (decayed * decayed);
      u[j] = rate * (m1[j] / (std::sqrt(m2[j]) / root_correction + epsilon));
    }
  }
  std::vector<std::pair<std::string, std::span<float>>> state() override {
    return {{"first_moment", first_}, {"second_moment", second_}};
  }
  std::vector<std::pair<std::string, double*>> scalars() override { return {{"steps", &steps_}}; }

 private:
  std::int64_t n_;
  UpdateRuleOptions options_;
  double steps_ = 0;
  std::vector<float> first_;
  std::vector<float> second_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adam(const UpdateRuleOptions& options, std::int64_t n) {
  return std::make_unique<Adam>(options, n);
}

}  // namespace fluentps::rules
