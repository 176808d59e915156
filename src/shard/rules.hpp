/// Makers of the single update rules, for make_update_rule only.
///
/// Their loops are marked ivdep: `update` is `gradient` itself or overlaps nothing, so elements are independent.
#pragma once

#include <memory>
#include <span>

#include "shard/update_rule.hpp"

namespace fluentps::rules {

std::unique_ptr<UpdateRule> make_sgd(const UpdateRuleOptions& options, std::int64_t n);
std::unique_ptr<UpdateRule> make_momentum(const UpdateRuleOptions& options, std::int64_t n, bool nesterov);
std::unique_ptr<UpdateRule> make_adam(const UpdateRuleOptions& options, std::int64_t n);
std::unique_ptr<UpdateRule> make_lars(const UpdateRuleOptions& options, std::int64_t n,
                                      const std::vector<LayerRange>& layers);

/// Throws std::invalid_argument unless all three have n elements.
void require_lengths(std::int64_t n, std::span<const float> weights, std::span<const float> gradient,
                     std::span<const float> update);

}  // namespace fluentps::rules
