/// Chunks on their way into a shard on a device, and weights on their way out, over a fake device.
#include "shard/shard_path.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "fake_device.hpp"

namespace fluentps::test {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kChunkElements = 1000;

/// The exposed memory of a server with one worker.
struct Exposed {
  Exposed(std::int64_t shard, std::uint32_t slots, WireFormat wire)
      : weights(static_cast<std::size_t>(wire_places(wire, shard))),
        inbox(static_cast<std::size_t>(wire_places(wire, kChunkElements)) * slots),
        options{.wire = wire,
                .shard_elements = shard,
                .chunk_elements = kChunkElements,
                .workers = 1,
                .ring = slots,
                .weights = weights,
                .inbox = inbox} {}

  std::span<float> slot(std::uint32_t k) {
    const auto places = static_cast<std::size_t>(wire_places(options.wire, kChunkElements));
    return std::span(inbox).subspan(k * places, places);
  }

  std::vector<float> weights;
  std::vector<float> inbox;
  ShardPathOptions options;
};

constexpr WorkerIndex kWorker{0};

/// Puts `value` everywhere into slot k mod slots and adds it to the k-th chunk of the shard.
void push_chunk(ShardPath& path, Exposed& exposed, std::uint32_t k, float value, std::size_t chunk) {
  const auto slot = k % exposed.options.ring;
  std::fill(exposed.slot(slot).begin(), exposed.slot(slot).end(), value);
  const auto values = path.bring_in(kWorker, slot, exposed.slot(slot), kChunkElements);
  passes::apply(path.memory(), path.weights().subspan(chunk * kChunkElements, kChunkElements), values, 1);
  path.used(kWorker, slot);
}

std::ptrdiff_t place(const FakeDevice::Log& log, const std::string& what) {
  const auto found = std::find(log.begin(), log.end(), what);
  return found == log.end() ? -1 : found - log.begin();
}

/// Waits until the log holds `what`; false after ten seconds, so that a path that does not overlap fails and ends.
bool await(const FakeDevice& device, const std::string& what) {
  for (int k = 0; k < 10000; ++k) {
    if (place(device.log(), what) >= 0) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

// Receive: chunks 0..5, a copy and a pass each. The pass of chunk k does not end before the copy of chunk k+1 begins.
// Expect: it ends, so copies run beside passes; and each pass begins after its own copy.
TEST(StagedPath, TheNextCopyRunsBesideThePass) {
  FakeDevice device;
  Exposed exposed(6 * kChunkElements, 3, WireFormat::kFp32);
  const auto path = make_staged_path(exposed.options, device);
  device.during(DeviceStream::kCompute, [&](int k) {
    if (k < 5) {
      EXPECT_TRUE(await(device, "begin in " + std::to_string(k + 1)));
    }
  });
  for (std::uint32_t k = 0; k < 6; ++k) {
    push_chunk(*path, exposed, k, static_cast<float>(k + 1), k);
    path->free_slot(kWorker, k % 3);  // waits for the copy only
  }
  path->publish();
  const auto log = device.log();
  for (int k = 0; k < 6; ++k)
    EXPECT_LT(place(log, "end in " + std::to_string(k)), place(log, "begin compute " + std::to_string(k)));
  for (std::size_t j = 0; j < exposed.weights.size(); ++j)
    ASSERT_EQ(exposed.weights[j], static_cast<float>(j / kChunkElements + 1));
}

// Receive: the device has not begun anything, and two chunks are given. Expect: nothing of that waits.
TEST(StagedPath, GivingWorkWaitsForNothing) {
  FakeDevice device;
  Exposed exposed(2 * kChunkElements, 2, WireFormat::kBf16);
  const auto path = make_staged_path(exposed.options, device);
  push_chunk(*path, exposed, 0, 0, 0);  // makes the slots' arrays
  push_chunk(*path, exposed, 1, 0, 1);
  path->publish();
  const auto before = device.log().size();
  device.pause();
  for (std::uint32_t k = 0; k < 2; ++k) push_chunk(*path, exposed, k, 0, k);
  EXPECT_EQ(device.log().size(), before);
  device.resume();
  path->publish();
}

// Receive: free_slot while its copy is slow. Expect: it returns after the copy's end, not before.
TEST(StagedPath, ASlotIsFreeWhenItsCopyHasEnded) {
  FakeDevice device;
  Exposed exposed(kChunkElements, 2, WireFormat::kFp32);
  const auto path = make_staged_path(exposed.options, device);
  device.during(DeviceStream::kIn, [](int) { std::this_thread::sleep_for(milliseconds(20)); });
  push_chunk(*path, exposed, 0, 1, 0);
  EXPECT_EQ(place(device.log(), "end in 0"), -1);
  path->free_slot(kWorker, 0);
  EXPECT_GE(place(device.log(), "end in 0"), 0);
}

// Receive: slots are filled again while slow passes still read the values that were in them. Expect: exact sums.
TEST(StagedPath, AReusedSlotDoesNotOvertakeThePassesOnIt) {
  for (const bool can_pin : {true, false}) {
    FakeDevice device({.can_pin = can_pin});
    Exposed exposed(kChunkElements, 2, WireFormat::kFp32);
    const auto path = make_staged_path(exposed.options, device);
    device.during(DeviceStream::kCompute, [](int) { std::this_thread::sleep_for(milliseconds(3)); });
    float sum = 0;
    for (std::uint32_t k = 0; k < 20; ++k) {
      push_chunk(*path, exposed, k, static_cast<float>(k), 0);
      path->free_slot(kWorker, k % 2);
      std::fill(exposed.slot(k % 2).begin(), exposed.slot(k % 2).end(), -1e6F);  // the worker writes at once
      sum += static_cast<float>(k);
    }
    path->publish();
    for (const float each : exposed.weights) ASSERT_EQ(each, sum);
  }
}

// Receive: packed chunks. Expect: the exposed weights hold the shard packed, pieces and a short last one included.
TEST(StagedPath, HalvesTravelBothWays) {
  constexpr std::int64_t kShard = (1 << 18) + 1001;
  for (const auto wire : {WireFormat::kBf16, WireFormat::kFp16}) {
    FakeDevice device;
    Exposed exposed(kShard, 2, wire);
    const auto path = make_staged_path(exposed.options, device);
    std::vector<float> values(kChunkElements);
    std::iota(values.begin(), values.end(), -500.0F);
    pack(wire, values, exposed.slot(1));
    const auto arrived = path->bring_in(kWorker, 1, exposed.slot(1), kChunkElements);
    passes::store(path->memory(), path->weights().last(kChunkElements), arrived);
    path->used(kWorker, 1);
    path->publish();
    std::vector<float> shard(kShard);
    unpack(wire, exposed.weights, shard);
    std::vector<float> rounded(values.size());
    std::vector<float> packed(exposed.slot(0).size());
    pack(wire, values, packed);
    unpack(wire, packed, rounded);
    for (std::size_t j = 0; j < values.size(); ++j) ASSERT_EQ(shard[shard.size() - values.size() + j], rounded[j]);
    EXPECT_EQ(shard[0], 0);
  }
}

TEST(StagedPath, PagesAreLockedWhereThatCanBeDone) {
  FakeDevice device;
  Exposed exposed(kChunkElements, 2, WireFormat::kFp32);
  const auto path = make_staged_path(exposed.options, device);
  push_chunk(*path, exposed, 0, 1, 0);
  path->publish();
  EXPECT_EQ(device.pinned_ranges(), 2);  // inbox and weights, no bounce buffer
}

// Receive: the third copy fails when it is given. Expect: that call throws, and all memory is given back.
TEST(StagedPath, ACopyThatCannotBeGivenThrows) {
  FakeDevice device;
  {
    Exposed exposed(kChunkElements, 2, WireFormat::kFp32);
    const auto path = make_staged_path(exposed.options, device);
    device.fail_copy_in(3);
    push_chunk(*path, exposed, 0, 1, 0);
    push_chunk(*path, exposed, 1, 1, 0);
    EXPECT_THROW(push_chunk(*path, exposed, 2, 1, 0), DeviceError);
  }
  EXPECT_EQ(device.unreturned(), 0U);
}

// Receive: a copy fails while it runs, after the call that gave it. Expect: a later call throws, nothing hangs, and all
// memory is given back.
TEST(StagedPath, ACopyThatFailsLaterThrowsLater) {
  for (const auto stream : {DeviceStream::kIn, DeviceStream::kCompute, DeviceStream::kOut}) {
    FakeDevice device;
    {
      Exposed exposed(kChunkElements, 2, WireFormat::kFp32);
      const auto path = make_staged_path(exposed.options, device);
      device.during(stream, [](int) { throw std::runtime_error("the bus is on fire"); });
      EXPECT_THROW(
          {
            push_chunk(*path, exposed, 0, 1, 0);
            path->free_slot(kWorker, 0);
            path->publish();
            path->publish();
          },
          DeviceError);
    }
    EXPECT_EQ(device.unreturned(), 0U);
  }
}

TEST(DeviceMemory, CopiesOfAnyLengthComeBack) {
  FakeDevice device;
  for (const std::size_t n : {0U, 1U, 15U, 16U, 17U, 32U, 33U, 100U}) {
    DeviceMemory memory(device, 16 * sizeof(float));
    std::vector<float> values(n), back(n, -1);
    std::iota(values.begin(), values.end(), 1.0F);
    const auto array = memory.allocate(n);
    memory.write(array, values);
    memory.read(array, back);
    EXPECT_EQ(back, values);
  }
  EXPECT_EQ(device.unreturned(), 0U);
}

// 3^2 + 4^2 = 25; nothing: 0; then more parts than before.
TEST(DeviceMemory, SquaredNorms) {
  FakeDevice device;
  DeviceMemory memory(device);
  const auto array = memory.allocate(3);
  memory.write(array, std::vector<float>{3, 4, 12});
  const std::vector<std::span<const float>> two = {array.first(2), array.first(0)};
  EXPECT_EQ(memory.squared_norms(two), (std::vector<double>{25, 0}));
  const std::vector<std::span<const float>> three = {array, array.last(1), array.first(1)};
  EXPECT_EQ(memory.squared_norms(three), (std::vector<double>{169, 144, 9}));
}

TEST(DeviceArray, MovesAndGivesBack) {
  FakeDevice device;
  {
    auto first = device_array<float>(device, 10);
    auto second = std::move(first);
    EXPECT_TRUE(first.span().empty());
    second = pinned_array<float>(device, 5);
    EXPECT_EQ(device.unreturned(), 1U);
  }
  EXPECT_EQ(device.unreturned(), 0U);
}

}  // namespace
}  // namespace fluentps::test
