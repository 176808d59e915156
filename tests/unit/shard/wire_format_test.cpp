/// bf16 and fp16 on the wire: values by hand from the definitions of the formats.
#include "shard/wire_format.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "fluentps/error.hpp"

namespace fluentps {
namespace {

float round_trip(WireFormat format, float value) {
  std::vector<float> wire(1);
  float back = 0;
  pack(format, std::span(&value, 1), wire);
  unpack(format, wire, std::span(&back, 1));
  return back;
}

TEST(WireFormat, Bf16RoundsToEightBitsOfPrecision) {
  EXPECT_EQ(round_trip(WireFormat::kBf16, 1.0F), 1.0F);
  EXPECT_EQ(round_trip(WireFormat::kBf16, -2.5F), -2.5F);
  // Neighbours of 1 are 1 + 2^-7 apart; half way goes to the even one.
  EXPECT_EQ(round_trip(WireFormat::kBf16, 1.0F + 0x1p-9F), 1.0F);
  EXPECT_EQ(round_trip(WireFormat::kBf16, 1.0F + 0x1p-8F), 1.0F);
  EXPECT_EQ(round_trip(WireFormat::kBf16, 1.0F + 0x1.8p-8F), 1.0F + 0x1p-7F);
  EXPECT_EQ(round_trip(WireFormat::kBf16, 1.0F + 0x1.8p-7F), 1.0F + 0x1p-6F);
  EXPECT_EQ(round_trip(WireFormat::kBf16, 1e38F) / 1e38F, std::ldexp(150.0F, 119) / 1e38F);
}

TEST(WireFormat, Fp16IsIeeeBinary16) {
  EXPECT_EQ(round_trip(WireFormat::kFp16, 1.0F + 0x1p-10F), 1.0F + 0x1p-10F);
  EXPECT_EQ(round_trip(WireFormat::kFp16, 1.0F + 0x1p-11F), 1.0F);
  EXPECT_EQ(round_trip(WireFormat::kFp16, 1.0F + 0x1.8p-11F), 1.0F + 0x1p-10F);
  EXPECT_EQ(round_trip(WireFormat::kFp16, 65504.0F), 65504.0F);
  EXPECT_EQ(round_trip(WireFormat::kFp16, 70000.0F), std::numeric_limits<float>::infinity());
  EXPECT_EQ(round_trip(WireFormat::kFp16, 0x1p-24F), 0x1p-24F) << "the smallest subnormal";
  EXPECT_EQ(round_trip(WireFormat::kFp16, 0x1p-26F), 0.0F);
}

TEST(WireFormat, NanAndInfinityStayWhatTheyAre) {
  for (const auto format : {WireFormat::kBf16, WireFormat::kFp16}) {
    EXPECT_TRUE(std::isnan(round_trip(format, std::numeric_limits<float>::quiet_NaN())));
    EXPECT_TRUE(std::isnan(round_trip(format, std::numeric_limits<float>::signaling_NaN())));
    EXPECT_EQ(round_trip(format, -std::numeric_limits<float>::infinity()), -std::numeric_limits<float>::infinity());
  }
}

TEST(WireFormat, LongAndOddRangesKeepTheirOrder) {
  for (const auto format : {WireFormat::kBf16, WireFormat::kFp16})
    for (const std::size_t n : {0U, 1U, 7U, 8U, 9U, 1001U}) {
      std::vector<float> values(n), back(n, -1.0F);
      for (std::size_t j = 0; j < n; ++j) values[j] = static_cast<float>(j % 128);  // exact in both
      std::vector<float> wire(static_cast<std::size_t>(wire_places(format, static_cast<std::int64_t>(n))));
      EXPECT_EQ(wire.size(), (n + 1) / 2);
      pack(format, values, wire);
      unpack(format, wire, back);
      EXPECT_EQ(back, values);
    }
}

TEST(WireFormat, OneByOneAndEightByEightAgree) {
  // A range of 8 takes the processor's conversion where it has one, a range of 1 the plain code.
  for (std::uint32_t bits = 0; bits < 0xFFFF'0000U; bits += 65'521U) {
    const auto value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    const std::vector<float> eight(8, value);
    std::vector<float> wire(4), back(8);
    pack(WireFormat::kFp16, eight, wire);
    unpack(WireFormat::kFp16, wire, back);
    ASSERT_EQ(back[3], round_trip(WireFormat::kFp16, value)) << value;
  }
}

TEST(WireFormat, RefusesAnotherName) { EXPECT_THROW(parse_wire_format("int8"), UsageError); }

}  // namespace
}  // namespace fluentps
