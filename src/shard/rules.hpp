/// Makers of the single update rules, for make_update_rule only. Their state lies in `memory`, which outlives them.
#pragma once

#include <memory>
#include <span>

#include "shard/shard_memory.hpp"
#include "shard/update_rule.hpp"

namespace fluentps::rules {

std::unique_ptr<UpdateRule> make_sgd(const UpdateRuleOptions& options, std::int64_t n, ShardMemory& memory);
std::unique_ptr<UpdateRule> make_momentum(const UpdateRuleOptions& options, std::int64_t n, bool nesterov,
                                          ShardMemory& memory);
std::unique_ptr<UpdateRule> make_adam(const UpdateRuleOptions& options, std::int64_t n, ShardMemory& memory);
std::unique_ptr<UpdateRule> make_lars(const UpdateRuleOptions& options, std::int64_t n,
                                      const std::vector<LayerRange>& layers, ShardMemory& memory);

/// Throws std::invalid_argument unless all three have n elements.
void require_lengths(std::int64_t n, std::span<const float> weights, std::span<const float> gradient,
                     std::span<const float> update);

}  // namespace fluentps::rules
