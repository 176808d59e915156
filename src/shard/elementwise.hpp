/// The arithmetic of shards, one functor per element-wise pass, compiled for the host and by nvcc for devices: the
/// tests of the host cover both. Outputs come first; an output may be the same array as an input, but not shifted
/// against it.
///
/// Both compilers round every operation by itself (-ffp-contract=off, -fmad=false), and division and square root are
/// those of IEEE 754 on either side, so element-wise passes give the same bits everywhere. Formulas: update_rule.hpp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define FLUENTPS_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define FLUENTPS_HOST_DEVICE inline __attribute__((always_inline))
#endif

namespace fluentps::elementwise {

/// sum := u
struct Store {
  FLUENTPS_HOST_DEVICE void operator()(float& sum, const float& u) const { sum = u; }
};

/// sum += u
struct Add {
  FLUENTPS_HOST_DEVICE void operator()(float& sum, const float& u) const { sum += u; }
};

/// w += scale * u
struct Apply {
  float scale;
  FLUENTPS_HOST_DEVICE void operator()(float& w, const float& u) const { w += scale * u; }
};

/// w += scale * ((t0 + t1) + ...)
struct ApplySum {
  float scale;
  template <typename... T>
  FLUENTPS_HOST_DEVICE void operator()(float& w, const float& first, const T&... rest) const {
    w += scale * (first + ... + rest);
  }
};

/// values := value
struct Fill {
  float value;
  FLUENTPS_HOST_DEVICE void operator()(float& element) const { element = value; }
};

/// values *= scale
struct Scale {
  float scale;
  FLUENTPS_HOST_DEVICE void operator()(float& value) const { value *= scale; }
};

/// rate = -lr
struct Sgd {
  float rate, decay;
  FLUENTPS_HOST_DEVICE void operator()(float& u, const float& w, const float& g) const { u = rate * (g + decay * w); }
};

struct Momentum {
  float momentum, decay, rate;
  FLUENTPS_HOST_DEVICE void operator()(float& u, float& v, const float& w, const float& g) const {
    v = momentum * v + (g + decay * w);
    u = rate * v;
  }
};

struct Nesterov {
  float momentum, decay, rate;
  FLUENTPS_HOST_DEVICE void operator()(float& u, float& v, const float& w, const float& g) const {
    const float decayed = g + decay * w;
    v = momentum * v + decayed;
    u = rate * (decayed + momentum * v);
  }
};

/// rest = 1 - beta; rate = -lr / (1 - beta1^t); root_correction = sqrt(1 - beta2^t).
struct Adam {
  float beta1, beta2, rest1, rest2, decay, epsilon, rate, root_correction;
  FLUENTPS_HOST_DEVICE void operator()(float& u, float& m1, float& m2, const float& w, const float& g) const {
    const float decayed = g + decay * w;
    m1 = beta1 * m1 + rest1 * decayed;
    m2 = beta2 * m2 + rest2 * (decayed * decayed);
    u = rate * (m1 / (std::sqrt(m2) / root_correction + epsilon));
  }
};

/// rate = lr * lambda of this layer.
struct Lars {
  float momentum, decay, rate;
  FLUENTPS_HOST_DEVICE void operator()(float& u, float& v, const float& w, const float& g) const {
    v = momentum * v + rate * (g + decay * w);
    u = -v;
  }
};

/// The term of a squared norm, which is summed in double: no float32 can make it infinite, an infinite or NaN one does.
struct Square {
  FLUENTPS_HOST_DEVICE double operator()(const float& value) const {
    const double wide = value;
    return wide * wide;
  }
};

/// Round to nearest, ties to even; NaN stays NaN.
struct ToBf16 {
  FLUENTPS_HOST_DEVICE void operator()(std::uint16_t& half, const float& value) const {
    constexpr std::uint32_t kQuietNan = 0x0040'0000U;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool nan = (bits & 0x7FFF'FFFFU) > 0x7F80'0000U;
    // Half of the last kept bit, less one where that bit is even: ties go to even.
    const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
    half = static_cast<std::uint16_t>((nan ? bits | kQuietNan : rounded) >> 16U);
  }
};

struct FromBf16 {
  FLUENTPS_HOST_DEVICE void operator()(float& value, const std::uint16_t& half) const {
    value = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16U);
  }
};

/// Round to nearest, ties to even; from 65520 on infinite; NaN stays NaN. Subnormal results come from an addition:
/// beside 0.5 one unit in the last place of float is 2^-24, that of binary16's subnormals, and the addition rounds as
/// wanted.
struct ToFp16 {
  FLUENTPS_HOST_DEVICE void operator()(std::uint16_t& half, const float& value) const {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16U) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
    std::uint32_t wide = 0;
    if (magnitude > 0x7F80'0000U) {
      wide = 0x7E00U;
    } else if (magnitude >= 0x477F'F000U) {  // 65520: half way to what would be 65536
      wide = 0x7C00U;
    } else if (magnitude < 0x3880'0000U) {  // 2^-14
      wide = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
    } else {
      wide = (magnitude + 0xFFFU + ((magnitude >> 13U) & 1U) - 0x3800'0000U) >> 13U;
    }
    half = static_cast<std::uint16_t>(sign | wide);
  }
};

struct FromFp16 {
  FLUENTPS_HOST_DEVICE void operator()(float& value, const std::uint16_t& half) const {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
    const std::uint32_t exponent = (half >> 10U) & 0x1FU;
    const std::uint32_t mantissa = half & 0x3FFU;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
      value = sign != 0 ? -magnitude : magnitude;
      return;
    }
    const std::uint32_t widened = exponent == 0x1FU ? 0x7F80'0000U : (exponent + 112U) << 23U;
    value = std::bit_cast<float>(sign | widened | (mantissa << 13U));
  }
};

}  // namespace fluentps::elementwise
