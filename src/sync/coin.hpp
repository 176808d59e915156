/// The seeded coin: a counter-based hash, so that drawing needs no state and gives the same on every server.
#pragma once

#include <cstdint>

namespace fluentps {

/// The finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection that mixes every bit into every other.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Uniform in [0, 1), 53 bits.
constexpr double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

}  // namespace fluentps
