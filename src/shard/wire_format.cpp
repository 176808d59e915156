#include "shard/wire_format.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "fluentps/error.hpp"
#include "shard/elementwise.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define FLUENTPS_HAS_F16C 1
#endif

namespace fluentps {
namespace {

void pack_bf16(const float* values, std::uint16_t* wire, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) elementwise::ToBf16{}(wire[j], values[j]);
}

void unpack_bf16(const std::uint16_t* wire, float* values, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) elementwise::FromBf16{}(values[j], wire[j]);
}

#ifdef FLUENTPS_HAS_F16C
constexpr std::size_t kLanes = 8;

/// Every x86-64 with AVX2 has the conversion instructions.
__attribute__((target("f16c,avx"))) std::size_t pack_fp16_fast(const float* values, std::uint16_t* wire,
                                                               std::size_t n) {
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(wire + j),
                     _mm256_cvtps_ph(_mm256_loadu_ps(values + j), _MM_FROUND_TO_NEAREST_INT));
  return j;
}

__attribute__((target("f16c,avx"))) std::size_t unpack_fp16_fast(const std::uint16_t* wire, float* values,
                                                                 std::size_t n) {
  std::size_t j = 0;
  for (; j + kLanes <= n; j += kLanes)
    _mm256_storeu_ps(values + j, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(wire + j))));
  return j;
}

bool has_f16c() { return __builtin_cpu_supports("avx2") != 0; }
#else
std::size_t pack_fp16_fast(const float*, std::uint16_t*, std::size_t) { return 0; }
std::size_t unpack_fp16_fast(const std::uint16_t*, float*, std::size_t) { return 0; }
bool has_f16c() { return false; }
#endif

void pack_fp16(const float* values, std::uint16_t* wire, std::size_t n) {
  for (std::size_t j = has_f16c() ? pack_fp16_fast(values, wire, n) : 0; j < n; ++j)
    elementwise::ToFp16{}(wire[j], values[j]);
}

void unpack_fp16(const std::uint16_t* wire, float* values, std::size_t n) {
  for (std::size_t j = has_f16c() ? unpack_fp16_fast(wire, values, n) : 0; j < n; ++j)
    elementwise::FromFp16{}(values[j], wire[j]);
}

void require_places(WireFormat format, std::size_t values, std::size_t places) {
  if (static_cast<std::int64_t>(places) != wire_places(format, static_cast<std::int64_t>(values)))
    throw std::invalid_argument(fmt::format("{} values do not take {} places on the wire", values, places));
}

}  // namespace

WireFormat parse_wire_format(std::string_view text) {
  if (text == "fp32") return WireFormat::kFp32;
  if (text == "bf16") return WireFormat::kBf16;
  if (text == "fp16") return WireFormat::kFp16;
  throw UsageError(fmt::format("unknown wire format '{}'; use fp32, bf16 or fp16", text));
}

std::string_view to_string(WireFormat format) {
  switch (format) {
    case WireFormat::kFp32:
      return "fp32";
    case WireFormat::kBf16:
      return "bf16";
    case WireFormat::kFp16:
      return "fp16";
  }
  return "?";
}

std::int64_t wire_places(WireFormat format, std::int64_t count) {
  return format == WireFormat::kFp32 ? count : (count + 1) / 2;
}

void pack(WireFormat format, std::span<const float> values, std::span<float> wire) {
  require_places(format, values.size(), wire.size());
  if (values.size() % 2 != 0) wire.back() = 0;
  auto* halves = reinterpret_cast<std::uint16_t*>(wire.data());
  (format == WireFormat::kBf16 ? pack_bf16 : pack_fp16)(values.data(), halves, values.size());
}

void unpack(WireFormat format, std::span<const float> wire, std::span<float> values) {
  require_places(format, values.size(), wire.size());
  const auto* halves = reinterpret_cast<const std::uint16_t*>(wire.data());
  (format == WireFormat::kBf16 ? unpack_bf16 : unpack_fp16)(halves, values.data(), values.size());
}

}  // namespace fluentps
