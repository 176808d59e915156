/// Cuts the slices of a shard at the borders of tensors.
#include "shard/shard_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fluentps/error.hpp"

namespace fluentps {
namespace {

/// Calls found(part of the shard, whether it is the whole tensor) for every overlap of a tensor and a slice of
/// `server`.
template <typename Found>
void for_each_part(const std::vector<TensorSpec>& tensors, const ShardMap& map, ServerIndex server,
                   const Found& found) {
  for (const auto& slice : map.slices(server)) {
    std::int64_t begin = 0;
    for (const auto& tensor : tensors) {
      const auto end = begin + tensor.size();
      const auto first = std::max(begin, slice.offset);
      const auto last = std::min(end, slice.offset + slice.count);
      if (first < last) found(tensor, LayerRange{slice.shard_offset + first - slice.offset, last - first});
      begin = end;
    }
  }
}

}  // namespace

std::vector<LayerRange> shard_layers(const std::vector<TensorSpec>& tensors, const ShardMap& map, ServerIndex server) {
  std::vector<LayerRange> layers;
  for_each_part(tensors, map, server, [&](const TensorSpec&, const LayerRange& part) { layers.push_back(part); });
  return layers;
}

void require_whole_tensors(const std::vector<TensorSpec>& tensors, const ShardMap& map) {
  for (std::uint32_t m = 0; m < map.servers(); ++m)
    for_each_part(tensors, map, ServerIndex{m}, [&](const TensorSpec& tensor, const LayerRange& part) {
      if (part.count == tensor.size()) return;
      throw UsageError(
          fmt::format("lars on the server needs whole tensors, but server {} holds only {} of the {} elements of {}; "
                      "use --slicing tensor, "
                      "--servers 1 or --optimizer-at worker",
                      m, part.count, tensor.size(), tensor.name));
    });
}

}  // namespace fluentps
