/// Every element of the parameter vector lies in exactly one shard, for any sizes.
#include "shard/shard_map.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "fluentps/error.hpp"

namespace fluentps {
namespace {

std::vector<TensorSpec> one_tensor(std::int64_t n) { return {{"w", {n}}}; }

/// Walks all shards and counts how often each element of the flat vector is owned.
void expect_each_element_once(const ShardMap& map) {
  std::vector<int> owners(static_cast<std::size_t>(map.size()));
  std::int64_t total = 0;
  for (std::uint32_t k = 0; k < map.servers(); ++k) {
    std::int64_t shard_offset = 0;
    for (const auto& slice : map.slices({k})) {
      EXPECT_EQ(slice.server.value, k);
      EXPECT_EQ(slice.shard_offset, shard_offset) << "a gap in the shard of server " << k;
      EXPECT_GT(slice.count, 0);
      for (std::int64_t j = slice.offset; j < slice.offset + slice.count; ++j) ++owners[static_cast<std::size_t>(j)];
      shard_offset += slice.count;
    }
    EXPECT_EQ(map.shard_size({k}), shard_offset);
    total += shard_offset;
  }
  EXPECT_EQ(total, map.size());
  for (std::size_t j = 0; j < owners.size(); ++j) ASSERT_EQ(owners[j], 1) << "element " << j;
}

struct Case {
  std::int64_t n;
  std::uint32_t servers;
};

class AllSlicings : public testing::TestWithParam<Case> {};

TEST_P(AllSlicings, CoverEveryElementOnce) {
  const auto [n, servers] = GetParam();
  const std::vector<TensorSpec> tensors = {{"a", {n / 3}}, {"b", {n / 5, 2}}, {"c", {n - n / 3 - n / 5 * 2}}};
  for (const auto slicing : {Slicing::kEps, Slicing::kTensor, Slicing::kRange}) {
    const ShardMap map(tensors, servers, slicing);
    EXPECT_EQ(map.size(), n);
    EXPECT_EQ(map.servers(), servers);
    expect_each_element_once(map);
  }
}

TEST_P(AllSlicings, EpsIsBalancedWithinOneLineAndCutsOnLines) {
  const auto [n, servers] = GetParam();
  const ShardMap map(one_tensor(n), servers, Slicing::kEps);
  for (std::uint32_t k = 0; k < servers; ++k) {
    // |size - n/S| < 16, in integers
    EXPECT_LT(std::llabs(map.shard_size({k}) * servers - n), std::int64_t{16} * servers) << "server " << k;
    ASSERT_LE(map.slices({k}).size(), 1U);
    for (const auto& slice : map.slices({k})) EXPECT_EQ(slice.offset % 16, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, AllSlicings,
                         testing::Values(Case{10, 3}, Case{2, 3}, Case{1000001, 2}, Case{853018, 7}, Case{0, 2},
                                         Case{1, 1}, Case{16, 1}, Case{17, 2}, Case{33, 32}, Case{61, 128}));

TEST(ShardMap, EpsBalanceForEverySmallSize) {
  for (std::int64_t n = 0; n < 400; ++n) {
    for (std::uint32_t servers = 1; servers < 12; ++servers) {
      const ShardMap map(one_tensor(n), servers, Slicing::kEps);
      std::int64_t end = 0;
      for (std::uint32_t k = 0; k < servers; ++k) {
        ASSERT_LT(std::llabs(map.shard_size({k}) * servers - n), std::int64_t{16} * servers) << n << '/' << servers;
        for (const auto& slice : map.slices({k})) {
          ASSERT_EQ(slice.offset, end);
          end += slice.count;
        }
      }
      ASSERT_EQ(end, n);
    }
  }
}

// 48 elements are 3 lines; 2 servers: 16 and 32.
TEST(ShardMap, EpsByHand) {
  const ShardMap map(one_tensor(48), 2, Slicing::kEps);
  EXPECT_EQ(map.slices({0}), (std::vector<Slice>{{{0}, 0, 0, 16}}));
  EXPECT_EQ(map.slices({1}), (std::vector<Slice>{{{1}, 16, 0, 32}}));
  EXPECT_EQ(map.largest_shard(), 32);
}

TEST(ShardMap, EpsManyElementsDoNotOverflow) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 50;
  const ShardMap map(one_tensor(kHuge), 1'000, Slicing::kEps);
  std::int64_t total = 0;
  for (std::uint32_t k = 0; k < 1'000; ++k) total += map.shard_size({k});
  EXPECT_EQ(total, kHuge);
  EXPECT_LE(map.largest_shard() - kHuge / 1'000, 16);
}

// Tensors of 3, 4, 5, 6 elements begin at 0, 3, 7, 12; server 0 gets the first and third, server 1 the others.
TEST(ShardMap, TensorRoundRobinByHand) {
  const ShardMap map({{"a", {3}}, {"b", {2, 2}}, {"c", {5}}, {"d", {6}}}, 2, Slicing::kTensor);
  EXPECT_EQ(map.slices({0}), (std::vector<Slice>{{{0}, 0, 0, 3}, {{0}, 7, 3, 5}}));
  EXPECT_EQ(map.slices({1}), (std::vector<Slice>{{{1}, 3, 0, 4}, {{1}, 12, 4, 6}}));
}

TEST(ShardMap, TensorOnOneServerIsOneSlice) {
  const ShardMap map({{"a", {3}}, {"b", {4}}}, 1, Slicing::kTensor);
  EXPECT_EQ(map.slices({0}), (std::vector<Slice>{{{0}, 0, 0, 7}}));
}

TEST(ShardMap, RangePutsAllOnTheFirstServer) {
  const ShardMap map(one_tensor(100), 4, Slicing::kRange);
  EXPECT_EQ(map.shard_size({0}), 100);
  for (std::uint32_t k = 1; k < 4; ++k) {
    EXPECT_EQ(map.shard_size({k}), 0);
    EXPECT_TRUE(map.slices({k}).empty());
    EXPECT_TRUE(map.pieces({k}, 0, 0).empty());
  }
}

TEST(ShardMap, PiecesByHand) {
  const ShardMap map({{"a", {3}}, {"b", {4}}, {"c", {5}}, {"d", {6}}, {"e", {2}}}, 2, Slicing::kTensor);
  // shard 0: a = [0,3) at 0, c = [7,12) at 3, e = [18,20) at 8
  EXPECT_EQ(map.pieces({0}, 0, 3), (std::vector<Slice>{{{0}, 0, 0, 3}}));
  EXPECT_EQ(map.pieces({0}, 3, 1), (std::vector<Slice>{{{0}, 7, 3, 1}}));
  EXPECT_EQ(map.pieces({0}, 2, 7), (std::vector<Slice>{{{0}, 2, 2, 1}, {{0}, 7, 3, 5}, {{0}, 18, 8, 1}}));
  EXPECT_EQ(map.pieces({0}, 10, 0), std::vector<Slice>{});
}

TEST(ShardMap, PiecesEqualAWalkOverElements) {
  std::vector<TensorSpec> tensors;
  for (std::int64_t t = 0; t < 9; ++t) tensors.push_back({"t", {t * t % 5}});
  const ShardMap map(tensors, 2, Slicing::kTensor);
  for (std::uint32_t k = 0; k < 2; ++k) {
    std::vector<std::int64_t> flat;
    for (const auto& slice : map.slices({k})) {
      for (std::int64_t j = 0; j < slice.count; ++j) flat.push_back(slice.offset + j);
    }
    const auto size = static_cast<std::int64_t>(flat.size());
    for (std::int64_t first = 0; first <= size; ++first) {
      for (std::int64_t count = 0; first + count <= size; ++count) {
        std::vector<std::int64_t> got;
        for (const auto& piece : map.pieces({k}, first, count)) {
          EXPECT_EQ(piece.shard_offset, first + static_cast<std::int64_t>(got.size()));
          for (std::int64_t j = 0; j < piece.count; ++j) got.push_back(piece.offset + j);
        }
        ASSERT_EQ(got, std::vector<std::int64_t>(flat.begin() + first, flat.begin() + first + count));
      }
    }
  }
}

TEST(ShardMap, PiecesOutsideOfTheShardAreRefused) {
  const ShardMap map(one_tensor(48), 2, Slicing::kEps);
  EXPECT_THROW(map.pieces({0}, 10, 7), std::out_of_range);
  EXPECT_THROW(map.pieces({0}, -1, 2), std::out_of_range);
  EXPECT_THROW(map.pieces({0}, 0, -1), std::out_of_range);
  EXPECT_THROW(map.pieces({0}, 17, 0), std::out_of_range);
  EXPECT_THROW(map.pieces({2}, 0, 0), std::out_of_range);
}

TEST(ShardMap, RefusesWhatCannotBe) {
  EXPECT_THROW(ShardMap(one_tensor(1), 0, Slicing::kEps), UsageError);
  EXPECT_THROW(ShardMap(one_tensor(-1), 1, Slicing::kEps), UsageError);
}

TEST(ShardMap, TextShowsEveryServer) {
  const std::string text = ShardMap(one_tensor(64), 2, Slicing::kEps).to_text();
  EXPECT_NE(text.find("50.00%  [32, 64)"), std::string::npos) << text;
}

TEST(Slicing, NamesGoBothWays) {
  for (const auto slicing : {Slicing::kEps, Slicing::kTensor, Slicing::kRange}) {
    EXPECT_EQ(parse_slicing(to_string(slicing)), slicing);
  }
  try {
    parse_slicing("tensors");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'tensor'?"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace fluentps
