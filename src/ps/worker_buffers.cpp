/// Buffers of a worker that lie on a device.
#include <algorithm>

#include "ps/worker_client.hpp"

namespace fluentps {

/// Whether this buffer lies where neither the data plane nor the host reads or writes it.
bool WorkerClient::passes_host(const float* buffer) const {
  if (options_.device == nullptr || !options_.device->owns(buffer)) return false;
  return !options_.direct || options_.wire != WireFormat::kFp32;
}

/// In the order in which chunks are sent: all first chunks, then all second ones.
std::unique_ptr<HostMirror> WorkerClient::make_mirror() const {
  std::vector<MirrorPiece> order;
  const auto most = std::max_element(lanes_.begin(), lanes_.end(), [](const Lane& a, const Lane& b) {
                      return a.chunks < b.chunks;
                    })->chunks;
  for (std::uint32_t chunk = 0; chunk < most; ++chunk)
    for (std::uint32_t k = 0; k < map_.servers(); ++k) {
      if (chunk >= lanes_[visit(k).value].chunks) continue;
      const auto first = static_cast<std::int64_t>(chunk) * options_.chunk_elements;
      const auto count = std::min(options_.chunk_elements, map_.shard_size(visit(k)) - first);
      for (const auto& piece : map_.pieces(visit(k), first, count)) order.push_back({piece.offset, piece.count});
    }
  return std::make_unique<HostMirror>(*options_.device, map_.size(), order);
}

/// What the data plane can read: `values`, or their copy on the host, which is under way.
std::span<const float> WorkerClient::source(std::span<const float> values) {
  mirrors_update_ = passes_host(values.data());
  if (!mirrors_update_) return values;
  if (!update_mirror_) update_mirror_ = make_mirror();
  update_mirror_->start_reading(values);
  return update_mirror_->host();
}

/// Where the weights of the next pull are to lie.
void WorkerClient::aim(std::span<float> weights) {
  if (!passes_host(weights.data())) {
    into_ = weights;
    return;
  }
  if (!weights_mirror_) weights_mirror_ = make_mirror();
  into_ = weights_mirror_->host();
  target_ = weights;
}

}  // namespace fluentps
