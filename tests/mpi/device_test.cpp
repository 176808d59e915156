/// Sessions whose shards and buffers lie on devices, over real MPI. Fake devices stand in for GPUs: what the host or
/// MPI must not touch is a segmentation fault there.
#include <algorithm>
#include <string>
#include <vector>

#include "../unit/gpu/fake_device.hpp"
#include "fluentps/error.hpp"
#include "fluentps/session.hpp"
#include "mpi_test.hpp"
#include "shard/device_memory.hpp"

namespace fluentps::test {

const char* const kRanks = "2 5";

namespace {

constexpr std::int64_t kParameters = 20011;

struct Way {
  std::string transfer = "off";
  std::string transport = "auto";
  bool host_accessible = false;
  bool can_pin = true;
};

class DeviceTest : public MpiTest {
 protected:
  static SessionOptions options(const Way& way) {
    SessionOptions options;
    options.servers = servers();
    options.transport = way.transport;
    options.tensors = {{"a", {kParameters / 3}}, {"b", {kParameters - kParameters / 3}}};
    options.chunk_kib = 4;
    options.sync = "bsp";
    options.gpu_transfer = way.transfer;
    if (way.transfer != "off")
      options.device = std::make_shared<FakeDevice>(FakeDevice::Options{
          .bytes = std::size_t{1} << 28, .host_accessible = way.host_accessible, .can_pin = way.can_pin});
    return options;
  }

  /// Where a worker's buffers lie.
  static std::unique_ptr<ShardMemory> memory(Session& session, bool on_device) {
    if (on_device) return std::make_unique<DeviceMemory>(*session.device());
    return std::make_unique<HostMemory>();
  }

  /// The weights that each worker pulled last, and on worker 0 those of the servers.
  static std::vector<float> train(const SessionOptions& options, bool on_device) {
    Session session(MPI_COMM_WORLD, options);
    std::vector<float> pulled(kParameters);
    session.run([&](Worker& worker) {
      const auto own = memory(session, on_device);
      const auto weights = own->allocate(kParameters);
      const auto update = own->allocate(kParameters);
      std::vector<float> values(kParameters, 0.25F);
      own->write(weights, values);
      worker.initialize(weights);
      for (int i = 0; i < 6; ++i) {
        for (std::size_t j = 0; j < values.size(); ++j)
          values[j] =
              0.01F * static_cast<float>((j * 7 + worker.index().value * 13 + static_cast<std::size_t>(i)) % 101);
        own->write(update, values);
        own->finish();
        if (i % 2 == 0) {
          worker.push_pull(update, weights);
        } else {
          worker.push(update);
          passes::fill(*own, update, -1);  // it may be changed as soon as push returns
          own->finish();
          worker.pull(weights);
        }
      }
      own->read(weights, pulled);
    });
    const auto final = session.gather_weights();
    pulled.insert(pulled.end(), final.begin(), final.end());
    return pulled;
  }
};

TEST_F(DeviceTest, EveryWayHasTheBitsOfTheHost) {
  for (const char* wire : {"fp32", "bf16"})
    for (const char* optimizer : {"", "momentum"}) {
      const auto run = [&](const Way& way, bool on_device) {
        auto own = options(way);
        own.wire = wire;
        if (*optimizer != '\0') own.server_optimizer = UpdateRuleOptions{.name = optimizer};
        return train(own, on_device);
      };
      const auto wanted = run({}, false);
      for (const bool on_device : {false, true}) {
        EXPECT_EQ(run({.transfer = "staged"}, on_device), wanted);
        EXPECT_EQ(run({.transfer = "staged", .can_pin = false}, on_device), wanted);
        EXPECT_EQ(run({.transfer = "staged", .transport = "p2p"}, on_device), wanted);
        EXPECT_EQ(run({.transfer = "direct", .host_accessible = true}, on_device), wanted);
      }
    }
}

TEST_F(DeviceTest, LocalGroupsAddUpWhereTheUpdatesLie) {
  const auto run = [&](const Way& way, bool on_device) {
    auto own = options(way);
    own.local_group = "size=2";
    return train(own, on_device);
  };
  const auto wanted = run({}, false);
  for (const bool on_device : {false, true}) {
    EXPECT_EQ(run({.transfer = "staged"}, on_device), wanted);
    EXPECT_EQ(run({.transfer = "direct", .host_accessible = true}, on_device), wanted);
  }
}

TEST_F(DeviceTest, AutoTakesDirectWhereItWorks) {
  Session direct(MPI_COMM_WORLD, options({.transfer = "auto", .host_accessible = true}));
  EXPECT_EQ(direct.gpu_transfer().find("direct: put and get"), 0U) << direct.gpu_transfer();
  direct.run([](Worker&) {});
  Session staged(MPI_COMM_WORLD, options({.transfer = "auto"}));
  EXPECT_EQ(staged.gpu_transfer().find("staged: direct does not work here ("), 0U) << staged.gpu_transfer();
  staged.run([](Worker&) {});
}

TEST_F(DeviceTest, DirectDoesNotFallBack) {
  for (const char* transport : {"rma", "p2p"}) try {
      Session session(MPI_COMM_WORLD, options({.transfer = "direct", .transport = transport}));
      FAIL() << "a session was made";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("--gpu-transfer direct"), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace fluentps::test
