/// Optimizers as element-wise rules on flat float32 vectors; usable on a worker (produces the update it pushes) and on
/// a server (applied to its shard). Plain C++.
///
/// With g' = g + beta*w (beta: weight decay) and the learning rate lr of this step, `update` is
///   sgd       -lr g'
///   momentum  v = m v + g';  -lr v                       as torch.optim.SGD
///   nesterov  v = m v + g';  -lr (g' + m v)              as torch.optim.SGD(nesterov=True)
///   adam      m1 = b1 m1 + (1-b1) g';  m2 = b2 m2 + (1-b2) g'^2;
///             -lr (m1 / (1-b1^t)) / (sqrt(m2 / (1-b2^t)) + epsilon)     Kingma and Ba 2015, as torch.optim.Adam
///   lars      per layer lambda = eta |w| / (|g| + beta |w|);  v = m v + lr lambda g';  -v         You et al. 2017
/// Momentum correction (Goyal et al. 2017, 2.3): momentum and nesterov keep v free of lr, so a new lr scales the whole
/// velocity at once. lars has lr inside v, so v is scaled by lr_new / lr_old when lr changes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fluentps/optimizer.hpp"
#include "fluentps/types.hpp"
#include "shard/shard_memory.hpp"

namespace fluentps {

/// A stretch of the flat vector that LARS treats as one layer.
struct LayerRange {
  std::int64_t offset = 0;
  std::int64_t count = 0;
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  /// update := what is to be added to the weights for this gradient at this learning rate; state moves on.
  /// All spans n float32 of the rule's memory; `update` may be `gradient`. Throws std::invalid_argument on another
  /// length.
  virtual void step(std::span<const float> weights, std::span<const float> gradient, double lr,
                    std::span<float> update) = 0;
  /// State tensors for checkpoints (velocity, moments), each n float32 of the rule's memory; valid while it lives.
  virtual std::vector<std::pair<std::string, std::span<float>>> state() = 0;
  /// Scalar state (adam's step count, last lr for momentum correction).
  virtual std::vector<std::pair<std::string, double*>> scalars() = 0;
};

/// `layers` matter to LARS only; they cover [0, n), in order and without gaps (none given: one layer). On a server the
/// layers are the parts of tensors that lie in its shard, and the norms are those of the parts. Throws UsageError on an
/// unknown name (gives the nearest) or bad value. The state lies in `memory`, which outlives the rule.
std::unique_ptr<UpdateRule> make_update_rule(const UpdateRuleOptions& options, std::int64_t n,
                                             const std::vector<LayerRange>& layers, ShardMemory& memory);
/// The same with the state in memory of the host that the rule owns.
std::unique_ptr<UpdateRule> make_update_rule(const UpdateRuleOptions& options, std::int64_t n,
                                             const std::vector<LayerRange>& layers);

}  // namespace fluentps
