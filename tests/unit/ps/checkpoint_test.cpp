/// Manifests, their damage, and shards read back by another number of servers.
#include "ps/checkpoint.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "fluentps/error.hpp"

namespace fluentps::test {
namespace {

namespace fs = std::filesystem;

const std::vector<TensorSpec> kTensors = {{"a.weight", {100, 3}}, {"a.bias", {7}}, {"b", {90}}};
constexpr std::int64_t kSize = 397;

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }

  /// A checkpoint of `servers` servers whose parameter j is j, with velocity -j and 17 steps.
  Manifest make(Iteration iteration, std::uint32_t servers, Slicing slicing = Slicing::kEps) {
    const ShardMap map(kTensors, servers, slicing);
    Manifest manifest;
    manifest.folder = checkpoint_folder(root_, iteration);
    manifest.iteration = iteration;
    manifest.servers = servers;
    manifest.workers = 2;
    manifest.tensors = kTensors;
    manifest.slicing = std::string(to_string(slicing));
    manifest.sync = "bsp";
    manifest.seed = 5;
    manifest.worker_state = {"momentum/velocity"};
    for (std::uint32_t m = 0; m < servers; ++m) {
      auto weights = shard_of(map, ServerIndex{m}, 1);
      auto velocity = shard_of(map, ServerIndex{m}, -1);
      double steps = 17;
      State state{{{"weights", weights}, {"rule/velocity", velocity}}, {{"rule/steps", &steps}}};
      manifest.files.push_back({server_file(m), write_part(root_, iteration, server_file(m), state)});
    }
    write_manifest(manifest);
    return manifest;
  }

  static std::vector<float> shard_of(const ShardMap& map, ServerIndex server, float factor) {
    std::vector<float> shard(static_cast<std::size_t>(map.shard_size(server)));
    for (const auto& slice : map.slices(server))
      for (std::int64_t j = 0; j < slice.count; ++j)
        shard[static_cast<std::size_t>(slice.shard_offset + j)] = factor * static_cast<float>(slice.offset + j);
    return shard;
  }

  static std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  const std::string root_ = fs::temp_directory_path() / ("fluentps-checkpoint-" + std::to_string(::getpid()));
};

TEST_F(CheckpointTest, ManifestComesBackAsItWas) {
  const auto written = make(600, 2);
  const auto read = find_checkpoint(root_);
  EXPECT_EQ(read.iteration, 600);
  EXPECT_EQ(read.servers, 2U);
  EXPECT_EQ(read.workers, 2U);
  EXPECT_EQ(read.tensors, kTensors);
  EXPECT_EQ(read.slicing, "eps");
  EXPECT_EQ(read.seed, 5U);
  EXPECT_EQ(read.worker_state, written.worker_state);
  ASSERT_EQ(read.files.size(), 2U);
  EXPECT_EQ(read.files[1].written, written.files[1].written);
  for (const auto& file : read.files) EXPECT_NO_THROW(check_file(read, file));
}

TEST_F(CheckpointTest, AnyNumberOfServersReadsItsShard) {
  for (const std::uint32_t then : {1U, 3U})
    for (const std::uint32_t now : {1U, 2U, 5U, 40U})
      for (const auto slicing : {Slicing::kEps, Slicing::kTensor}) {
        const auto manifest = make(10, then, Slicing::kEps);
        const ShardMap map(kTensors, now, slicing);
        for (std::uint32_t m = 0; m < now; ++m) {
          std::vector<float> weights(static_cast<std::size_t>(map.shard_size(ServerIndex{m})), 1e9F);
          auto velocity = weights;
          double steps = 0;
          read_shard(manifest, map, ServerIndex{m},
                     {{{"weights", weights}, {"rule/velocity", velocity}}, {{"rule/steps", &steps}}});
          EXPECT_EQ(weights, shard_of(map, ServerIndex{m}, 1)) << then << " to " << now << ", server " << m;
          EXPECT_EQ(velocity, shard_of(map, ServerIndex{m}, -1));
          EXPECT_EQ(steps, 17);
        }
      }
}

TEST_F(CheckpointTest, ShardOfAnotherOptimizerIsRefused) {
  const auto manifest = make(10, 1);
  std::vector<float> weights(kSize);
  const ShardMap map(kTensors, 1, Slicing::kEps);
  const auto text = refusal([&] { read_shard(manifest, map, ServerIndex{0}, {{{"weights", weights}}, {}}); });
  EXPECT_NE(text.find("rule/velocity"), std::string::npos) << text;
}

TEST_F(CheckpointTest, NewestWholeOneIsTakenAndOldOnesGo) {
  for (const Iteration i : {5, 50, 500}) make(i, 1);
  fs::create_directories(checkpoint_folder(root_, 1));     // never finished, before the oldest kept
  fs::create_directories(checkpoint_folder(root_, 5000));  // being written
  EXPECT_EQ(find_checkpoint(root_).iteration, 500);
  EXPECT_EQ(find_checkpoint(checkpoint_folder(root_, 5)).iteration, 5);
  EXPECT_EQ(find_checkpoint(checkpoint_folder(root_, 5) + "/").iteration, 5);
  remove_old(root_, 2);
  EXPECT_FALSE(fs::exists(checkpoint_folder(root_, 1)));
  EXPECT_FALSE(fs::exists(checkpoint_folder(root_, 5)));
  EXPECT_TRUE(fs::exists(checkpoint_folder(root_, 50)));
  EXPECT_TRUE(fs::exists(checkpoint_folder(root_, 5000)));
  remove_old(root_, 0);
  EXPECT_TRUE(fs::exists(checkpoint_folder(root_, 50)));
}

TEST_F(CheckpointTest, DamageIsRefusedByNameAndTheOneBeforeOffered) {
  make(50, 2);
  const auto manifest = make(60, 2);
  const auto path = fs::path(manifest.folder) / server_file(1);
  const auto flip = [](const fs::path& file, std::streamoff at) {
    std::fstream io(file, std::ios::in | std::ios::out | std::ios::binary);
    io.seekg(at);
    const auto byte = static_cast<char>(io.get() ^ 1);
    io.seekp(at);
    io.put(byte);
  };
  flip(path, static_cast<std::streamoff>(fs::file_size(path) / 2));
  const auto flipped = refusal([&] { check_file(manifest, manifest.files[1]); });
  EXPECT_NE(flipped.find("server-0001.h5"), std::string::npos) << flipped;
  EXPECT_NE(flipped.find("--resume " + checkpoint_folder(root_, 50)), std::string::npos) << flipped;
  EXPECT_NO_THROW(check_file(manifest, manifest.files[0]));
  fs::resize_file(path, 100);
  EXPECT_NE(refusal([&] { check_file(manifest, manifest.files[1]); }).find("100 bytes"), std::string::npos);
  fs::remove(path);
  EXPECT_NE(refusal([&] { check_file(manifest, manifest.files[1]); }).find("missing"), std::string::npos);
  const auto text = fs::path(manifest.folder) / "manifest.json";
  const auto bytes = static_cast<std::streamoff>(fs::file_size(text));
  for (std::streamoff at = 0; at < bytes; ++at) {
    std::ifstream in(text, std::ios::binary);
    in.seekg(at);
    if (std::isspace(in.get())) continue;  // white space between the parts means nothing
    flip(text, at);
    EXPECT_NE(refusal([&] { (void)find_checkpoint(manifest.folder); }), "") << "byte " << at;
    flip(text, at);
  }
  fs::resize_file(text, static_cast<std::uintmax_t>(bytes - 20));
  EXPECT_NE(refusal([&] { (void)find_checkpoint(root_); }).find("manifest.json"), std::string::npos);
}

TEST_F(CheckpointTest, NothingThereIsSaid) {
  EXPECT_NE(refusal([&] { (void)find_checkpoint(root_ + "/nowhere"); }).find("holds no whole checkpoint"),
            std::string::npos);
}

TEST_F(CheckpointTest, StateOfOneWorkerPinsTheirNumber) {
  const auto manifest = make(10, 1);
  std::vector<float> velocity(kSize);
  const State own{{{"momentum/velocity", velocity}}, {}};
  EXPECT_NO_THROW(check_worker_state(manifest, own, 2));
  EXPECT_NE(refusal([&] { check_worker_state(manifest, own, 3); }).find("2 workers"), std::string::npos);
  EXPECT_NE(refusal([&] { check_worker_state(manifest, {}, 2); }).find("momentum/velocity"), std::string::npos);
}

}  // namespace
}  // namespace fluentps::test
