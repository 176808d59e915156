/// Cuts the flat parameter vector over the servers.
#include "shard/shard_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "fluentps/error.hpp"
#include "text/words.hpp"

namespace fluentps {
namespace {

constexpr std::int64_t kLineFloats = 16;  // 64 bytes

constexpr std::array<std::pair<Slicing, std::string_view>, 3> kNames = {
    {{Slicing::kEps, "eps"}, {Slicing::kTensor, "tensor"}, {Slicing::kRange, "range"}}};

/// First element of server k: the lines are dealt out so that counts differ by at most one, the last server having the
/// most, since the last line may be partly filled. k*lines could overflow for huge n and S, hence the two parts.
std::int64_t cut(std::int64_t n, std::int64_t servers, std::int64_t k) {
  const std::int64_t lines = (n + kLineFloats - 1) / kLineFloats;
  const std::int64_t line = k * (lines / servers) + k * (lines % servers) / servers;
  return std::min(n, line * kLineFloats);
}

}  // namespace

Slicing parse_slicing(std::string_view text) {
  std::vector<std::string> valid;
  for (const auto& [slicing, name] : kNames) {
    if (name == text) return slicing;
    valid.emplace_back(name);
  }
  throw UsageError(fmt::format("--slicing: unknown slicing '{}', did you mean '{}'? Valid: {}", text,
                               nearest_name(text, valid), join_names(valid)));
}

std::string_view to_string(Slicing slicing) { return kNames[static_cast<std::size_t>(slicing)].second; }

ShardMap::ShardMap(const std::vector<TensorSpec>& tensors, std::uint32_t servers, Slicing slicing) {
  if (servers == 0) throw UsageError("a shard map needs at least one server, found 0: raise --servers");
  shards_.resize(servers);
  shard_sizes_.assign(servers, 0);
  for (const auto& tensor : tensors) {
    if (std::any_of(tensor.shape.begin(), tensor.shape.end(), [](std::int64_t extent) { return extent < 0; })) {
      throw UsageError(fmt::format("tensor '{}' has a negative extent: give its true shape", tensor.name));
    }
    size_ += tensor.size();
  }
  switch (slicing) {
    case Slicing::kEps:
      for (std::uint32_t k = 0; k < servers; ++k) {
        const std::int64_t first = cut(size_, servers, k);
        append(k, first, cut(size_, servers, std::int64_t{k} + 1) - first);
      }
      break;
    case Slicing::kTensor: {
      std::int64_t offset = 0;
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        append(static_cast<std::uint32_t>(t % servers), offset, tensors[t].size());
        offset += tensors[t].size();
      }
      break;
    }
    case Slicing::kRange:
      append(0, 0, size_);
      break;
  }
}

void ShardMap::append(std::uint32_t server, std::int64_t offset, std::int64_t count) {
  if (count == 0) return;
  auto& slices = shards_[server];
  auto& shard_size = shard_sizes_[server];
  if (!slices.empty() && slices.back().offset + slices.back().count == offset) {
    slices.back().count += count;
  } else {
    slices.push_back({ServerIndex{server}, offset, shard_size, count});
  }
  shard_size += count;
}

std::int64_t ShardMap::shard_size(ServerIndex server) const { return shard_sizes_.at(server.value); }

std::int64_t ShardMap::largest_shard() const { return *std::max_element(shard_sizes_.begin(), shard_sizes_.end()); }

const std::vector<Slice>& ShardMap::slices(ServerIndex server) const { return shards_.at(server.value); }

std::vector<Slice> ShardMap::pieces(ServerIndex server, std::int64_t first, std::int64_t count) const {
  const std::int64_t shard = shard_size(server);
  if (first < 0 || count < 0 || first > shard || count > shard - first) {
    throw std::out_of_range(
        fmt::format("elements [{}, {}+{}) of server {}'s shard of {}", first, first, count, server.value, shard));
  }
  std::vector<Slice> result;
  if (count == 0) return result;
  const auto& slices = shards_[server.value];
  auto slice = std::upper_bound(slices.begin(), slices.end(), first,
                                [](std::int64_t value, const Slice& s) { return value < s.shard_offset; });
  for (--slice; count > 0; ++slice) {
    const std::int64_t skip = first - slice->shard_offset;
    const std::int64_t taken = std::min(count, slice->count - skip);
    result.push_back({server, slice->offset + skip, first, taken});
    first += taken;
    count -= taken;
  }
  return result;
}

std::string ShardMap::to_text() const {
  std::string text = fmt::format("{:>6} {:>12} {:>7}  {}\n", "server", "elements", "share", "slices [offset, end)");
  for (std::size_t k = 0; k < shards_.size(); ++k) {
    const double share = size_ == 0 ? 0 : 100.0 * static_cast<double>(shard_sizes_[k]) / static_cast<double>(size_);
    text += fmt::format("{:>6} {:>12} {:>6.2f}% ", k, shard_sizes_[k], share);
    constexpr std::size_t kShown = 4;
    const auto& slices = shards_[k];
    for (std::size_t i = 0; i < std::min(slices.size(), kShown); ++i) {
      text += fmt::format(" [{}, {})", slices[i].offset, slices[i].offset + slices[i].count);
    }
    if (slices.size() > kShown) text += fmt::format(" and {} more", slices.size() - kShown);
    if (slices.empty()) text += " none";
    text += '\n';
  }
  return text;
}

}  // namespace fluentps
