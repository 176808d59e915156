/// Random numbers that are the same on every machine: SplitMix64 streams, each chosen by a key.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

namespace fluentps::train {

class Random {
 public:
  /// The stream of a key such as {seed, worker, iteration}.
  Random(std::initializer_list<std::uint64_t> key) {
    for (const auto part : key) state_ = mix(state_ ^ part) + kStep;
  }

  std::uint64_t next() { return mix(state_ += kStep); }
  /// [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// 0 .. bound-1 (bound > 0); biased by less than bound / 2^64.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// Standard normal, Box and Muller 1958; two uniforms each.
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }
  std::uint64_t state_ = kStep;
};

/// First part of a key: keeps the streams of different purposes apart.
enum Stream : std::uint64_t {
  kWeightStream = 1,
  kOrderStream,
  kAugmentStream,
  kNoiseStream,
  kStragglerStream,
  kDataStream,
  kComputeStream
};

}  // namespace fluentps::train
