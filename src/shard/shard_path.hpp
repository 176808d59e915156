/// How a shard's values travel between the memory that workers reach, called exposed, and the memory in which the shard
/// is computed. Plain C++.
///
///   host     the exposed memory is the shard, or holds it packed in the wire's format
///   staged   the shard lies on a device, the exposed memory on the host: chunks are copied in while the chunk before
///            them is applied, weights are copied out before they are granted
///
///              worker's put     copy, kIn          pass, kCompute
///            | slot k+1      -> | slot k        -> | slot k-1     -> shard
///
///   direct   both lie on a device: MPI reads and writes it
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fluentps/types.hpp"
#include "shard/device_memory.hpp"
#include "shard/shard_memory.hpp"
#include "shard/wire_format.hpp"

namespace fluentps {

struct ShardPathOptions {
  WireFormat wire = WireFormat::kFp32;
  std::int64_t shard_elements = 0;  ///< float32
  std::int64_t chunk_elements = 0;  ///< float32 in one slot, unpacked
  std::uint32_t workers = 1;
  std::uint32_t ring = 1;    ///< slots per worker
  std::span<float> weights;  ///< exposed: the shard, in places of the wire's format
  std::span<float> inbox;    ///< exposed: all slots; may be empty, then chunks come from anywhere
};

class ShardPath {
 public:
  virtual ~ShardPath() = default;
  virtual ShardMemory& memory() = 0;
  /// The shard, in memory().
  virtual std::span<float> weights() = 0;
  /// `count` values that lie, packed, in `arrived`, a slot of the exposed memory, as float32 in memory(): to be used by
  /// passes only, until the slot is freed, or where passing() until the next call.
  virtual std::span<const float> bring_in(WorkerIndex worker, std::uint32_t slot, std::span<const float> arrived,
                                          std::int64_t count) = 0;
  virtual bool passing() const = 0;
  /// The passes that use this slot's values have been given.
  virtual void used(WorkerIndex worker, std::uint32_t slot) = 0;
  /// After used: returns when the worker may write the exposed slot again.
  virtual void free_slot(WorkerIndex worker, std::uint32_t slot) = 0;
  /// How many slots are best kept used but not freed, so that freeing waits for nothing: no more than ring - 1.
  virtual std::uint32_t freed_later() const = 0;
  /// Returns when the exposed memory holds the shard as of all passes so far.
  virtual void publish() = 0;
};

std::unique_ptr<ShardPath> make_host_path(const ShardPathOptions& options);
/// `device` outlives the path.
std::unique_ptr<ShardPath> make_staged_path(const ShardPathOptions& options, Device& device);
/// `options.weights` and `options.inbox` lie on `device`.
std::unique_ptr<ShardPath> make_direct_path(const ShardPathOptions& options, Device& device);

/// Passes between float32 and the wire's format (not kFp32), wherever the arrays lie.
Pass pack_pass(WireFormat wire, std::span<const float> values, std::span<float> places);
Pass unpack_pass(WireFormat wire, std::span<const float> places, std::span<float> values);

}  // namespace fluentps
