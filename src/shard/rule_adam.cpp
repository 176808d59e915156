/// Adam (Kingma and Ba 2015) with L2 weight decay, in the order of operations of torch.optim.Adam.
#include <cmath>

#include "shard/rules.hpp"

namespace fluentps::rules {
namespace {

class Adam : public UpdateRule {
 public:
  Adam(const UpdateRuleOptions& options, std::int64_t n, ShardMemory& memory)
      : memory_(memory),
        n_(n),
        options_(options),
        first_(memory.allocate(static_cast<std::size_t>(n))),
        second_(memory.allocate(static_cast<std::size_t>(n))) {}

  void step(std::span<const float> weights, std::span<const float> gradient, double lr,
            std::span<float> update) override {
    require_lengths(n_, weights, gradient, update);
    steps_ += 1;
    const elementwise::Adam f{.beta1 = static_cast<float>(options_.beta1),
                              .beta2 = static_cast<float>(options_.beta2),
                              .rest1 = static_cast<float>(1 - options_.beta1),
                              .rest2 = static_cast<float>(1 - options_.beta2),
                              .decay = static_cast<float>(options_.weight_decay),
                              .epsilon = static_cast<float>(options_.epsilon),
                              .rate = static_cast<float>(-lr / (1 - std::pow(options_.beta1, steps_))),
                              .root_correction = static_cast<float>(std::sqrt(1 - std::pow(options_.beta2, steps_)))};
    memory_.run(
        make_pass(f, update.size(), update.data(), first_.data(), second_.data(), weights.data(), gradient.data()));
  }
  std::vector<std::pair<std::string, std::span<float>>> state() override {
    return {{"first_moment", first_}, {"second_moment", second_}};
  }
  std::vector<std::pair<std::string, double*>> scalars() override { return {{"steps", &steps_}}; }

 private:
  ShardMemory& memory_;
  std::int64_t n_;
  UpdateRuleOptions options_;
  double steps_ = 0;
  std::span<float> first_;
  std::span<float> second_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adam(const UpdateRuleOptions& options, std::int64_t n, ShardMemory& memory) {
  return std::make_unique<Adam>(options, n, memory);
}

}  // namespace fluentps::rules
