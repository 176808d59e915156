/// The tensors of a shard as layers, for LARS on a server. Plain C++.
#pragma once

#include <vector>

#include "fluentps/types.hpp"
#include "shard/shard_map.hpp"
#include "shard/update_rule.hpp"

namespace fluentps {

/// The parts of tensors in the shard of `server`, in shard order, covering it without gaps.
std::vector<LayerRange> shard_layers(const std::vector<TensorSpec>& tensors, const ShardMap& map, ServerIndex server);

/// Throws UsageError where a tensor lies on more than one server: its norm would be that of a part.
void require_whole_tensors(const std::vector<TensorSpec>& tensors, const ShardMap& map);

}  // namespace fluentps
