#include "shard/host_mirror.hpp"

#include <cstdio>

namespace fluentps {

HostMirror::HostMirror(Device& device, std::int64_t n, const std::vector<MirrorPiece>& order)
    : device_(device), host_(pinned_array<float>(device, static_cast<std::size_t>(n))) {
  for (const auto& range : order) {
    if (range.count == 0) continue;
    by_offset_[range.offset] = pieces_.size();
    pieces_.push_back({range, device.make_event()});
  }
}

HostMirror::~HostMirror() {
  try {
    finish();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fluentps: at the end of a worker: %s\n", error.what());
  }
}

void HostMirror::start_reading(std::span<const float> device) {
  for (auto& piece : pieces_) {
    const auto from =
        device.subspan(static_cast<std::size_t>(piece.range.offset), static_cast<std::size_t>(piece.range.count));
    device_.copy_out(reinterpret_cast<std::byte*>(host_.span().data() + piece.range.offset),
                     reinterpret_cast<const std::byte*>(from.data()), from.size_bytes());
    device_.record(*piece.copied, DeviceStream::kOut);
  }
}

void HostMirror::await(std::int64_t offset, std::int64_t count) {
  auto piece = by_offset_.upper_bound(offset);
  if (piece != by_offset_.begin()) --piece;
  for (; piece != by_offset_.end() && piece->first < offset + count; ++piece)
    device_.synchronize(*pieces_[piece->second].copied);
}

void HostMirror::start_writing(std::span<float> device, std::int64_t offset, std::int64_t count) {
  device_.copy_in(reinterpret_cast<std::byte*>(device.data() + offset),
                  reinterpret_cast<const std::byte*>(host_.span().data() + offset),
                  static_cast<std::size_t>(count) * sizeof(float));
}

void HostMirror::finish() {
  device_.synchronize(DeviceStream::kOut);
  device_.synchronize(DeviceStream::kIn);
}

}  // namespace fluentps
