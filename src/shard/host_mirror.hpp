/// A worker's update or weights on a device, seen from the host: page-locked copies that fill piece by piece, so that
/// the first pieces are on the network while the last are still on the bus. Plain C++.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "shard/device.hpp"

namespace fluentps {

/// A stretch of the flat vector, in elements.
struct MirrorPiece {
  std::int64_t offset = 0;
  std::int64_t count = 0;
};

class HostMirror {
 public:
  /// Of n float32. `order`: pieces that do not overlap, in the order in which they are wanted. `device` outlives it.
  HostMirror(Device& device, std::int64_t n, const std::vector<MirrorPiece>& order);
  /// Waits for what is under way.
  ~HostMirror();
  HostMirror(const HostMirror&) = delete;
  HostMirror& operator=(const HostMirror&) = delete;

  std::span<float> host() const { return host_.span(); }

  /// Starts copying n elements from the device, whose values are there already. They stay untouched until finish.
  void start_reading(std::span<const float> device);
  /// Returns when elements [offset, offset+count) of host() are those of the device.
  void await(std::int64_t offset, std::int64_t count);
  /// Starts copying [offset, offset+count) of host() into the device's vector of n elements.
  void start_writing(std::span<float> device, std::int64_t offset, std::int64_t count);
  /// Returns when all copies have ended.
  void finish();

 private:
  struct Piece {
    MirrorPiece range;
    std::unique_ptr<DeviceEvent> copied;
  };

  Device& device_;
  DeviceArray<float> host_;
  std::vector<Piece> pieces_;                      ///< in order
  std::map<std::int64_t, std::size_t> by_offset_;  ///< index in pieces_
};

}  // namespace fluentps
