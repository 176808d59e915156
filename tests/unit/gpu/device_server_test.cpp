/// A server whose shard lies on a device does what the one on the host does, bit for bit: a fake device stands in,
/// whose memory the host cannot touch.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../ps/server_bench.hpp"
#include "fake_device.hpp"

namespace fluentps::test {
namespace {

constexpr std::uint32_t kWorkers = 3;
constexpr std::int64_t kElements = 5 * kChunk - 3;

enum class Where { kHost, kStaged, kBounced, kDirect };

struct Case {
  std::string sync;
  std::string optimizer;
  WireFormat wire = WireFormat::kFp32;
};

/// What the workers were granted, in order, and the state at the end.
struct Outcome {
  std::vector<std::vector<float>> grants;
  std::vector<float> state;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome(const Case& test, Where where) {
  FakeDevice device({.host_accessible = where == Where::kDirect, .can_pin = where == Where::kStaged});
  DeviceMemory memory(device);
  const auto adjust = [&](ServerOptions& options) {
    if (where != Where::kHost) options.device = &device;
    options.direct = where == Where::kDirect;
    options.wire = test.wire;
    options.shard_elements = kElements;
    if (!test.optimizer.empty()) options.optimizer = UpdateRuleOptions{.name = test.optimizer, .weight_decay = 0.01};
  };
  Bench bench(test.sync, kWorkers, kElements, 2, Release::kLazy, adjust, where == Where::kDirect ? &memory : nullptr);
  bench.lr = 0.3;
  bench.initialize(0.7F);
  Outcome result;
  for (Iteration i = 0; i < 4; ++i)
    for (std::uint32_t w = 0; w < kWorkers; ++w) {
      // The last worker first, so that ordered sums have chunks that wait.
      const auto worker = kWorkers - 1 - w;
      bench.push(worker, i, 0.1F * static_cast<float>(worker + 1) + 0.01F * static_cast<float>(i));
      for (std::uint32_t reader = 0; reader < kWorkers; ++reader)
        for (const auto& each : bench.grants(reader)) {
          result.grants.push_back(each.payload);
          if ((each.header.flags & kAckWanted) != 0)
            bench.receive(reader, {.kind = MessageKind::kPullDone, .iteration = each.header.iteration});
        }
    }
  for (const auto& [name, values] : bench.server->state().arrays)
    result.state.insert(result.state.end(), values.begin(), values.end());
  return result;
}

class DeviceServer : public testing::TestWithParam<Case> {};

TEST_P(DeviceServer, HasTheBitsOfTheHost) {
  const auto wanted = outcome(GetParam(), Where::kHost);
  ASSERT_FALSE(wanted.grants.empty());
  EXPECT_NE(wanted.state[0], 0.7F);
  EXPECT_EQ(outcome(GetParam(), Where::kStaged), wanted);
  EXPECT_EQ(outcome(GetParam(), Where::kBounced), wanted);
  EXPECT_EQ(outcome(GetParam(), Where::kDirect), wanted);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* sync : {"bsp", "asp", "ssp:s=1", "drop:n=2", "softsync:n=2"})
    for (const char* optimizer : {"", "sgd", "momentum", "nesterov", "adam"}) all.push_back({sync, optimizer});
  all.push_back({"bsp", "lars"});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Models, DeviceServer, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param.sync.substr(0, info.param.sync.find(':')) + "_" +
                     (info.param.optimizer.empty() ? "sum" : info.param.optimizer);
  return name;
});

// A state that was read into is taken over by the device.
TEST(DeviceServerState, IsAdopted) {
  FakeDevice device;
  Bench bench("bsp", 1, kElements, 2, Release::kLazy, [&](ServerOptions& options) {
    options.device = &device;
    options.optimizer = UpdateRuleOptions{.name = "momentum"};
  });
  bench.initialize(1);
  for (auto& [name, values] : bench.server->state().arrays) std::fill(values.begin(), values.end(), 5.0F);
  bench.server->adopt_state();
  for (const auto& [name, values] : bench.server->state().arrays) EXPECT_EQ(values.back(), 5.0F) << name;
  EXPECT_EQ(bench.server->weights().back(), 5.0F);
}

// Receive: pushes longer than the ring. Expect: all slots but one are free again while chunks are still to come, all at
// the end: a worker that waits for a slot gets it.
TEST(DeviceServerCredits, AreNeverAllHeldBack) {
  FakeDevice device;
  Bench bench("asp", 1, 8 * kChunk, 2, Release::kLazy, [&](ServerOptions& options) { options.device = &device; });
  bench.initialize(0);
  std::uint32_t credits = 0;
  for (std::uint32_t c = 0; c < 8; ++c) {
    bench.send_chunk(0, MessageKind::kPush, 0, c, 1, kWantPull);
    for (const auto& each : bench.network.sent) credits += each.header.credits;
    bench.network.sent.clear();
    EXPECT_GE(credits, c == 7 ? 8 : c) << c;
  }
}

// Receive: a device that fails in the middle of a push. Expect: handle throws, and all memory is given back.
TEST(DeviceServerFailure, EndsTheServer) {
  FakeDevice device;
  {
    Bench bench("bsp", 1, kElements, 2, Release::kLazy, [&](ServerOptions& options) { options.device = &device; });
    bench.initialize(1);
    device.fail_copy_in(2);
    EXPECT_THROW(bench.push(0, 0, 1), DeviceError);
  }
  EXPECT_EQ(device.unreturned(), 0U);
}

}  // namespace
}  // namespace fluentps::test
