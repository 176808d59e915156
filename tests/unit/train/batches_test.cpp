/// Workers share out the global batch, and how many they are changes nothing.
#include "train/batches.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "fluentps/error.hpp"

namespace fluentps::train {
namespace {

std::vector<std::uint32_t> global_batch(std::int64_t images, std::uint32_t workers, std::uint32_t batch, Iteration t,
                                        std::uint64_t seed = 1) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t w = 0; w < workers; ++w) {
    DataOrder order({images, workers, batch}, seed);
    const auto part = order.part(t, {w});
    EXPECT_EQ(part.size(), batch);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(DataOrder, DoesNotDependOnTheNumberOfWorkers) {
  for (const Iteration t : {0, 3, 4, 9, 1000}) {
    const auto one = global_batch(100, 1, 24, t);
    EXPECT_EQ(global_batch(100, 2, 12, t), one);
    EXPECT_EQ(global_batch(100, 8, 3, t), one);
  }
}

// 100 images, batches of 24: 4 in an epoch, 96 different images, 4 left out; other ones in the next epoch.
TEST(DataOrder, EpochsVisitEachImageAtMostOnce) {
  EXPECT_EQ(DataOrder({100, 2, 12}, 1).iterations_per_epoch(), 4);
  std::vector<std::set<std::uint32_t>> seen(2);
  for (Iteration t = 0; t < 8; ++t) {
    for (const auto index : global_batch(100, 2, 12, t)) {
      EXPECT_LT(index, 100U);
      EXPECT_TRUE(seen[static_cast<std::size_t>(t / 4)].insert(index).second) << "twice in an epoch: " << index;
    }
  }
  EXPECT_EQ(seen[0].size(), 96U);
  EXPECT_EQ(seen[1].size(), 96U);
  EXPECT_NE(global_batch(100, 2, 12, 0), global_batch(100, 2, 12, 4));
}

TEST(DataOrder, SeedsDiffer) { EXPECT_NE(global_batch(100, 1, 24, 0, 1), global_batch(100, 1, 24, 0, 2)); }

TEST(DataOrder, GoingBackGivesTheSamePart) {
  DataOrder order({100, 1, 24}, 1);
  const auto first = order.part(0, {0});
  const std::vector<std::uint32_t> copy(first.begin(), first.end());
  order.part(5, {0});
  EXPECT_TRUE(std::ranges::equal(order.part(0, {0}), copy));
}

// Every image equally often first: 10 images, 20,000 seeds, expected 2,000 each, standard deviation 42.
TEST(DataOrder, PermutationsAreUniform) {
  std::map<std::uint32_t, int> first;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) ++first[DataOrder({10, 1, 10}, seed).part(0, {0})[0]];
  for (std::uint32_t index = 0; index < 10; ++index) EXPECT_NEAR(first[index], 2'000, 210);
}

TEST(DataOrder, BatchLargerThanTheDataIsRefused) {
  EXPECT_NO_THROW(DataOrder({100, 4, 25}, 1));
  EXPECT_THROW(DataOrder({100, 4, 26}, 1), UsageError);
  EXPECT_THROW(DataOrder({100, 4'000'000'000U, 4'000'000'000U}, 1), UsageError);
}

/// One image of 2 channels, 6x6: value = 100c + 10y + x.
DataSets one_image() {
  DataSets sets;
  sets.train.form = {2, 6, 6, 10};
  for (int c = 0; c < 2; ++c) {
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 6; ++x) sets.train.pixels.push_back(static_cast<std::uint8_t>(100 * c + 10 * y + x));
    }
  }
  sets.train.labels = {0};
  sets.shift = 128;
  sets.scale = 1.0F / 128;
  return sets;
}

std::vector<float> prepared(const DataSets& sets, Augmentation augmentation, const ImageKey& key) {
  std::vector<float> image(72);
  prepare_augmented(sets, 0, augmentation, key, image.data());
  return image;
}

TEST(Prepare, ScalesByHand) {
  const auto sets = one_image();
  const auto image = prepared(sets, {}, {});
  EXPECT_EQ(image[0], -1.0F);              // (0 - 128) / 128
  EXPECT_EQ(image[6], -118.0F / 128);      // y = 1
  EXPECT_EQ(image[36 + 35], 27.0F / 128);  // 100 + 50 + 5
}

TEST(Prepare, FlipsHalfOfTheImagesByKey) {
  const auto sets = one_image();
  const auto plain = prepared(sets, {}, {});
  auto mirrored = plain;
  for (auto row = mirrored.begin(); row != mirrored.end(); row += 6) std::reverse(row, row + 6);
  int flips = 0;
  for (std::uint64_t position = 0; position < 1'000; ++position) {
    const ImageKey key{7, 3, position};
    const auto image = prepared(sets, {.flip = true, .crop = false}, key);
    EXPECT_EQ(image, prepared(sets, {.flip = true, .crop = false}, key));
    ASSERT_TRUE(image == plain || image == mirrored);
    flips += image == mirrored ? 1 : 0;
  }
  EXPECT_NEAR(flips, 500, 80);  // 5 standard deviations
}

// A shift by (dy, dx) shows pixel (y+dy, x+dx), zero outside; all 81 shifts come up.
TEST(Prepare, CropsAreShiftsUpToFour) {
  const auto sets = one_image();
  const auto plain = prepared(sets, {}, {});
  std::map<std::vector<float>, int> found;
  for (int dy = -4; dy <= 4; ++dy) {
    for (int dx = -4; dx <= 4; ++dx) {
      std::vector<float> shifted(72, 0.0F);
      for (int c = 0; c < 2; ++c) {
        for (int y = std::max(0, -dy); y < std::min(6, 6 - dy); ++y) {
          for (int x = std::max(0, -dx); x < std::min(6, 6 - dx); ++x) {
            shifted[static_cast<std::size_t>(36 * c + 6 * y + x)] =
                plain[static_cast<std::size_t>(36 * c + 6 * (y + dy) + x + dx)];
          }
        }
      }
      found[shifted] = 0;
    }
  }
  ASSERT_EQ(found.size(), 81U);
  for (std::uint64_t position = 0; position < 2'000; ++position) {
    const auto hit = found.find(prepared(sets, {.flip = false, .crop = true}, {7, 3, position}));
    ASSERT_NE(hit, found.end());
    ++hit->second;
  }
  for (const auto& [image, times] : found) EXPECT_GT(times, 0);
}

TEST(Augmentation, Names) {
  EXPECT_TRUE(parse_augmentation("auto", "cifar10").flip);
  EXPECT_FALSE(parse_augmentation("auto", "fashion-mnist").flip);
  EXPECT_TRUE(parse_augmentation("flip+crop", "cifar10").crop);
  EXPECT_THROW(parse_augmentation("flop", "cifar10"), UsageError);
}

}  // namespace
}  // namespace fluentps::train
