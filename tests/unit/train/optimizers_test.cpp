/// Our update rules against torch::optim, step by step on one sequence of gradients.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "shard/update_rule.hpp"

namespace fluentps::train {
namespace {

constexpr std::int64_t kSize = 101;
constexpr int kSteps = 25;

float gradient_at(int step, std::int64_t j) {
  return std::sin(0.3F * static_cast<float>(j + 1) * static_cast<float>(step + 1));
}

/// Changes on the way, so that the treatment of lr in the velocity shows.
double rate_at(int step) { return step < 10 ? 0.1 : 0.03; }

/// Runs both, comparing the weights after every step.
template <typename Optimizer, typename Options>
void compare(const UpdateRuleOptions& ours, Options theirs) {
  const auto rule = make_update_rule(ours, kSize, {});
  std::vector<float> weights(kSize), gradient(kSize), update(kSize);
  for (std::int64_t j = 0; j < kSize; ++j) weights[static_cast<std::size_t>(j)] = std::cos(static_cast<float>(j));
  auto parameter = torch::tensor(weights).requires_grad_();
  Optimizer optimizer({parameter}, theirs);
  for (int step = 0; step < kSteps; ++step) {
    for (std::int64_t j = 0; j < kSize; ++j) gradient[static_cast<std::size_t>(j)] = gradient_at(step, j);
    rule->step(weights, gradient, rate_at(step), update);
    for (std::size_t j = 0; j < weights.size(); ++j) weights[j] += update[j];
    parameter.mutable_grad() = torch::tensor(gradient);
    static_cast<Options&>(optimizer.param_groups()[0].options()).lr(rate_at(step));
    optimizer.step();
    const auto difference = (parameter.detach() - torch::tensor(weights)).abs().max().template item<float>();
    ASSERT_LT(difference, 2e-6F) << "after step " << step;
  }
}

TEST(AgainstTorch, Sgd) { compare<torch::optim::SGD>({.name = "sgd"}, torch::optim::SGDOptions(0.1)); }

TEST(AgainstTorch, SgdWeightDecay) {
  compare<torch::optim::SGD>({.name = "sgd", .weight_decay = 0.05}, torch::optim::SGDOptions(0.1).weight_decay(0.05));
}

TEST(AgainstTorch, Momentum) {
  compare<torch::optim::SGD>({.name = "momentum", .momentum = 0.9, .weight_decay = 5e-4},
                             torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(5e-4));
}

TEST(AgainstTorch, Nesterov) {
  compare<torch::optim::SGD>({.name = "nesterov", .momentum = 0.9, .weight_decay = 0.01},
                             torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01).nesterov(true));
}

TEST(AgainstTorch, Adam) { compare<torch::optim::Adam>({.name = "adam"}, torch::optim::AdamOptions(0.1)); }

TEST(AgainstTorch, AdamWeightDecay) {
  compare<torch::optim::Adam>({.name = "adam", .weight_decay = 0.02},
                              torch::optim::AdamOptions(0.1).weight_decay(0.02));
}

}  // namespace
}  // namespace fluentps::train
