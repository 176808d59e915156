/// Where every parameter lives: the flat parameter vector cut over the servers. Plain C++.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fluentps/types.hpp"

namespace fluentps {

/// How parameters are cut over servers.
///   eps     every server gets n/S elements within one cache line, cuts on 64-byte borders (default)
///   tensor  whole tensors, round robin
///   range   PS-Lite's key ranges: keys are 64-bit, ours all fall into the first server's range
enum class Slicing { kEps, kTensor, kRange };
Slicing parse_slicing(std::string_view text);  ///< throws UsageError
std::string_view to_string(Slicing slicing);

/// `count` elements at `offset` of the flat vector, lying at `shard_offset` of the shard of `server`. Elements, not
/// bytes.
struct Slice {
  ServerIndex server;
  std::int64_t offset = 0;
  std::int64_t shard_offset = 0;
  std::int64_t count = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};

class ShardMap {
 public:
  /// Any n >= 0 and S >= 1; empty shards are legal. Throws UsageError for no server or a negative extent.
  ShardMap(const std::vector<TensorSpec>& tensors, std::uint32_t servers, Slicing slicing);

  std::int64_t size() const { return size_; }  ///< n, elements
  std::uint32_t servers() const { return static_cast<std::uint32_t>(shards_.size()); }
  std::int64_t shard_size(ServerIndex server) const;  ///< elements
  std::int64_t largest_shard() const;
  /// Slices of one server by rising shard_offset, without gaps; none for an empty shard. Neighbours are merged.
  const std::vector<Slice>& slices(ServerIndex server) const;
  /// The pieces of shard elements [first, first+count) in the flat vector, in shard order; their shard_offset counts
  /// from the start of the shard. Throws std::out_of_range outside of the shard.
  std::vector<Slice> pieces(ServerIndex server, std::int64_t first, std::int64_t count) const;
  /// A table a person reads: server, elements, share, slices.
  std::string to_text() const;

 private:
  void append(std::uint32_t server, std::int64_t offset, std::int64_t count);

  std::int64_t size_ = 0;
  std::vector<std::vector<Slice>> shards_;
  std::vector<std::int64_t> shard_sizes_;
};

}  // namespace fluentps
