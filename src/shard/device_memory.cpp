#include "shard/device_memory.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

namespace fluentps {

DeviceMemory::DeviceMemory(Device& device, std::size_t piece_bytes)
    : device_(device), piece_elements_(std::max<std::size_t>(1, piece_bytes / sizeof(float))) {}

void DeviceMemory::synchronize_all() {
  for (const auto stream : {DeviceStream::kIn, DeviceStream::kCompute, DeviceStream::kOut}) device_.synchronize(stream);
}

void DeviceMemory::quiesce() noexcept {
  std::string failure;
  for (const auto stream : {DeviceStream::kIn, DeviceStream::kCompute, DeviceStream::kOut}) try {
      device_.synchronize(stream);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  if (failure.empty() || std::exchange(failed_, true) || std::uncaught_exceptions() > 0) return;
  std::fprintf(stderr, "fluentps: at the end of a shard: %s\n", failure.c_str());
}

std::span<float> DeviceMemory::allocate(std::size_t n) {
  return arrays_.emplace_back(device_array<float>(device_, n)).span();
}

void DeviceMemory::make_pieces() {
  constexpr std::size_t kPieces = 2;  // one is copied while the host fills or empties the other
  while (pieces_.size() < kPieces)
    pieces_.push_back({pinned_array<float>(device_, piece_elements_), device_.make_event()});
}

std::vector<double> DeviceMemory::squared_norms(std::span<const std::span<const float>> parts) {
  if (norms_.span().size() < parts.size()) {
    synchronize_all();  // nothing under way uses the old ones
    norms_ = device_array<double>(device_, parts.size());
    norms_on_host_ = pinned_array<double>(device_, parts.size());
  }
  for (std::size_t k = 0; k < parts.size(); ++k) device_.squared_norm(parts[k], norms_.span().data() + k);
  const auto computed = device_.make_event();
  device_.record(*computed, DeviceStream::kCompute);
  device_.wait(DeviceStream::kOut, *computed);
  device_.copy_out(norms_on_host_.bytes(), norms_.bytes(), parts.size() * sizeof(double));
  device_.synchronize(DeviceStream::kOut);
  const auto norms = norms_on_host_.span().first(parts.size());
  return {norms.begin(), norms.end()};
}

/// No sum of squares of finite float32 leaves the range of double.
bool DeviceMemory::all_finite(std::span<const float> values) {
  return std::isfinite(squared_norms(std::span(&values, 1)).front());
}

void DeviceMemory::write(std::span<float> to, std::span<const float> host) {
  make_pieces();
  finish();  // no pass reads the old values
  for (std::size_t at = 0, k = 0; at < host.size(); at += piece_elements_, k ^= 1U) {
    auto& piece = pieces_[k];
    const auto part = host.subspan(at, std::min(piece_elements_, host.size() - at));
    device_.synchronize(*piece.copied);
    std::copy(part.begin(), part.end(), piece.memory.span().begin());
    device_.copy_in(reinterpret_cast<std::byte*>(to.data() + at), piece.memory.bytes(), part.size_bytes());
    device_.record(*piece.copied, DeviceStream::kIn);
  }
  device_.synchronize(DeviceStream::kIn);
}

void DeviceMemory::read(std::span<const float> from, std::span<float> host) {
  make_pieces();
  finish();
  const auto start = [&](std::size_t at, Piece& piece) {
    const auto part = from.subspan(at, std::min(piece_elements_, from.size() - at));
    device_.copy_out(piece.memory.bytes(), reinterpret_cast<const std::byte*>(part.data()), part.size_bytes());
    device_.record(*piece.copied, DeviceStream::kOut);
  };
  if (!from.empty()) start(0, pieces_[0]);
  for (std::size_t at = 0, k = 0; at < from.size(); at += piece_elements_, k ^= 1U) {
    if (at + piece_elements_ < from.size()) start(at + piece_elements_, pieces_[k ^ 1U]);
    device_.synchronize(*pieces_[k].copied);
    const auto count = std::min(piece_elements_, from.size() - at);
    std::copy_n(pieces_[k].memory.span().begin(), count, host.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

}  // namespace fluentps
