/// How a shard is cut into the chunks of a push; the last one may be short.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace fluentps {

/// Chunks of a push of `elements`. An empty shard is pushed too, as one empty chunk: its clock moves like the others'.
inline std::uint32_t chunk_count(std::int64_t elements, std::int64_t chunk_elements) {
  const auto length = std::max<std::int64_t>(1, chunk_elements);
  return static_cast<std::uint32_t>(std::max<std::int64_t>(1, (elements + length - 1) / length));
}

/// The elements of chunk `chunk` of a shard, or of anything of its length.
inline std::span<float> chunk_part(std::span<float> of, std::int64_t chunk_elements, std::uint32_t chunk) {
  const auto length = static_cast<std::size_t>(chunk_elements);
  const auto first = std::min(length * chunk, of.size());
  return of.subspan(first, std::min(length, of.size() - first));
}

}  // namespace fluentps
