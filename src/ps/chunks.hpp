/// How a shard is cut into the chunks of a push; the last one may be short.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace fluentps {

/// The elements of chunk `chunk` of a shard, or of anything of its length.
inline std::span<float> chunk_part(std::span<float> of, std::int64_t chunk_elements, std::uint32_t chunk) {
  const auto length = static_cast<std::size_t>(chunk_elements);
  const auto first = std::min(length * chunk, of.size());
  return of.subspan(first, std::min(length, of.size() - first));
}

}  // namespace fluentps
