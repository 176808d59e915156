/// NCCL: the GPUs of some ranks, usually those of a node, reduce to a leader and hear from it. The only place that
/// calls NCCL. A declaration for any compiler; without NCCL=1 the constructor throws UsageError.
///
/// NCCL and MPI must not both be at work on GPU buffers: synchronize() before any MPI call that touches them.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "shard/device.hpp"

namespace fluentps {

/// A call of NCCL that failed: which, NCCL's text, and where.
class NcclError : public RunError {
 public:
  using RunError::RunError;
};

bool built_with_nccl();

class NcclGroup {
 public:
  /// Made by one rank, which sends its bytes to the others (by MPI, say).
  using Id = std::array<std::byte, 128>;
  static Id make_id();

  /// Collective over the `ranks` that share `id`, each on a device of its own, `device`, opened before by open_device;
  /// it outlives the group. Throws NcclError.
  NcclGroup(const Id& id, int ranks, int rank, Device& device);
  /// Ends the communicator; while an exception unwinds without the others.
  ~NcclGroup();
  NcclGroup(NcclGroup&& other) noexcept;
  NcclGroup& operator=(NcclGroup&& other) noexcept;

  /// Start, after all passes so far, on the device's kCompute: n float32 on the device, the same n on all ranks.
  /// `values` of the leader := sum over all ranks; those of the others are left as they are.
  void reduce_to(int leader, std::span<float> values);
  /// `values` of all ranks := the leader's.
  void broadcast_from(int leader, std::span<float> values);

  /// Returns when all of it has ended. A rank that died, or more than `limit` without an end, ends the communicator and
  /// throws NcclError.
  void synchronize(std::chrono::milliseconds limit = std::chrono::seconds(60));

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluentps
