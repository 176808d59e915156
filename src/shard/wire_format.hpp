/// Number formats on the wire: servers keep float32, what travels may be half as wide. Plain C++.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fluentps {

/// fp32: as it is. bf16: 8 bits of exponent, 8 of precision. fp16: IEEE binary16, 5 bits of exponent, 11 of precision;
/// values beyond 65504 become infinite. Both round to nearest, ties to even; NaN stays NaN.
enum class WireFormat : std::uint8_t { kFp32, kBf16, kFp16 };
WireFormat parse_wire_format(std::string_view text);  ///< throws UsageError
std::string_view to_string(WireFormat format);

/// float32 places that `count` values take on the wire: two values a place, the last place half empty for odd counts.
std::int64_t wire_places(WireFormat format, std::int64_t count);

/// Packs `values` into `wire` (wire_places of them) and back. Not for kFp32, which needs no packing.
void pack(WireFormat format, std::span<const float> values, std::span<float> wire);
void unpack(WireFormat format, std::span<const float> wire, std::span<float> values);

}  // namespace fluentps
