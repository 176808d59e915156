/// A worker's vectors on a device, seen from the host.
#include "shard/host_mirror.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "fake_device.hpp"
#include "shard/device_memory.hpp"

namespace fluentps::test {
namespace {

constexpr std::int64_t kN = 100;

struct Fixture {
  Fixture() : memory(device), vector(memory.allocate(kN)), values(kN) {
    std::iota(values.begin(), values.end(), 1.0F);
    memory.write(vector, values);
  }
  FakeDevice device;
  DeviceMemory memory;
  std::span<float> vector;
  std::vector<float> values;
};

// Receive: the second wanted piece is slow. Expect: the first one can be used before it.
TEST(HostMirror, ThePieceThatIsWantedFirstComesFirst) {
  Fixture f;
  HostMirror mirror(f.device, kN, {{60, 40}, {0, 30}, {30, 30}});
  std::atomic<bool> go = false;
  f.device.during(DeviceStream::kOut, [&](int k) {
    while (k > 0 && !go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  mirror.start_reading(f.vector);
  mirror.await(60, 40);
  EXPECT_TRUE(std::equal(f.values.begin() + 60, f.values.end(), mirror.host().begin() + 60));
  go = true;
  mirror.await(10, 30);  // of two pieces
  EXPECT_TRUE(std::equal(f.values.begin(), f.values.begin() + 60, mirror.host().begin()));
}

TEST(HostMirror, WritesPieces) {
  Fixture f;
  HostMirror mirror(f.device, kN, {{0, kN}});
  std::fill(mirror.host().begin(), mirror.host().end(), -1.0F);
  mirror.start_writing(f.vector, 90, 10);
  mirror.start_writing(f.vector, 0, 5);
  mirror.finish();
  f.memory.read(f.vector, f.values);
  for (std::size_t j = 0; j < f.values.size(); ++j)
    EXPECT_EQ(f.values[j], j < 5 || j >= 90 ? -1.0F : static_cast<float>(j + 1));
}

TEST(HostMirror, AFailingCopyThrowsAndLeaksNothing) {
  FakeDevice device;
  {
    DeviceMemory memory(device);
    const auto vector = memory.allocate(kN);
    HostMirror mirror(device, kN, {{0, kN}});
    device.during(DeviceStream::kOut, [](int) { throw std::runtime_error("the bus is on fire"); });
    EXPECT_THROW(
        {
          mirror.start_reading(vector);  // throws where the copy has failed already
          mirror.await(0, kN);
        },
        DeviceError);
  }
  EXPECT_EQ(device.unreturned(), 0U);
}

}  // namespace
}  // namespace fluentps::test
