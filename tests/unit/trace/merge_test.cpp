/// run.h5 holds what the ranks' files hold, appears whole or not at all, and can be made while a run goes on.
#include "trace/merge.hpp"

#include <fcntl.h>
#include <sys/mount.h>

#include <fstream>

#include "fluentps/error.hpp"
#include "temp_dir.hpp"
#include "trace/attributes.hpp"
#include "trace/hdf5_error.hpp"
#include "trace/weights_file.hpp"

namespace fluentps::trace {
namespace {

namespace fs = std::filesystem;

void write_rank(const TempDir& dir, int rank, bool server, bool close) {
  const auto path = dir.file("rank-000" + std::to_string(rank) + ".h5");
  auto attributes = rank_attributes(server ? "server" : "worker", rank, server ? 0 : rank - 1);
  attributes.emplace_back("shard_map", "server 0: all");
  if (server) {
    ServerTrace trace({.path = path, .attributes = attributes});
    for (std::uint32_t v = 1; v <= 3; ++v) trace.add(AdvanceRow{.v = v, .time_ns = 10 * v});
    close ? trace.close() : trace.flush();
  } else {
    WorkerTrace trace({.path = path, .attributes = attributes, .clock_offset_ns = 100 + rank});
    for (std::uint32_t i = 0; i < 70'000; ++i) trace.add(iteration_row(i));  // more than one block of the reader
    close ? trace.close() : trace.flush();
  }
}

TEST(Merge, HoldsEveryRank) {
  const TempDir dir;
  write_rank(dir, 0, true, true);
  write_rank(dir, 1, false, true);
  write_rank(dir, 2, false, true);
  const auto path = merge(dir.path());
  EXPECT_EQ(path, dir.file("run.h5"));
  const auto run = load_run(path);
  ASSERT_EQ(run.ranks.size(), 3U);
  EXPECT_EQ(value_of(run.attributes, "shard_map"), "server 0: all");
  EXPECT_EQ(value_of(run.attributes, "sync"), "ssp:s=2");
  EXPECT_EQ(value_of(run.attributes, "done"), "1");
  EXPECT_EQ(value_of(run.attributes, "ranks"), "3");
  EXPECT_EQ(value_of(run.attributes, "role", "none"), "none");
  EXPECT_EQ(value_of(run.ranks[1].attributes, "clock_offset_ns"), "101");
  EXPECT_EQ(run.workers().size(), 2U);
  EXPECT_EQ(run.workers()[1]->rank, 2);
  ASSERT_EQ(run.ranks[2].iterations.size(), 70'000U);
  for (std::uint32_t i = 0; i < 70'000; ++i) ASSERT_TRUE(equal(run.ranks[2].iterations[i], iteration_row(i))) << i;
  ASSERT_EQ(run.ranks[0].advances.size(), 3U);
  EXPECT_EQ(run.ranks[0].advances[2].time_ns, 30U);
  EXPECT_EQ(load_run(dir.path()).path, path) << "the merged file is newer than the ranks'";
  for (const auto& each : fs::directory_iterator(dir.path())) EXPECT_NE(each.path().extension(), ".tmp");
}

TEST(Merge, ShortTablesMakeASmallFile) {
  const TempDir dir;
  write_rank(dir, 0, true, true);
  EXPECT_LT(fs::file_size(merge(dir.path())), 20'000U);
}

TEST(Merge, RunsWithoutDoneMarkMergeAndSaySo) {
  const TempDir dir;
  write_rank(dir, 0, true, true);
  write_rank(dir, 1, false, false);
  const auto run = load_run(merge(dir.path()));
  EXPECT_EQ(value_of(run.attributes, "done"), "0");
  EXPECT_TRUE(run.ranks[0].done);
  EXPECT_FALSE(run.ranks[1].done);
  EXPECT_EQ(run.ranks[1].iterations.size(), 70'000U);
}

TEST(Merge, UnreadableRankIsNamedAndOldMergeStays) {
  const TempDir dir;
  write_rank(dir, 0, true, true);
  const auto path = merge(dir.path());
  std::ofstream(dir.file("rank-0001.h5")) << "noise";
  EXPECT_THROW(merge(dir.path()), UsageError);
  EXPECT_EQ(load_run(path).ranks.size(), 1U);
  const auto recovery = recover(dir.path());
  ASSERT_EQ(recovery.notes.size(), 1U);
  EXPECT_NE(recovery.notes[0].find("rank-0001.h5"), std::string::npos);
  EXPECT_EQ(load_run(recovery.merged).ranks.size(), 1U);
}

TEST(Merge, EmptyFolderIsUsage) {
  const TempDir dir;
  EXPECT_THROW(merge(dir.path()), UsageError);
  EXPECT_THROW(merge("/nowhere"), UsageError);
}

TEST(Merge, FullDiskLeavesNoHalfFile) {
  const TempDir dir;
  const auto disk = dir.file("disk");
  fs::create_directory(disk);
  if (::mount("fluentps-test", disk.c_str(), "tmpfs", 0, "size=6m") != 0) GTEST_SKIP() << "mounting needs root";
  write_rank(dir, 1, false, true);  // 4 MB
  fs::copy_file(dir.file("rank-0001.h5"), disk + "/rank-0001.h5");
  EXPECT_THROW(merge(disk), Hdf5Error);
  EXPECT_FALSE(fs::exists(disk + "/run.h5"));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& each : fs::directory_iterator(disk)) ++files;
  EXPECT_EQ(files, 1U);
  EXPECT_EQ(::umount(disk.c_str()), 0) << "a descriptor was left open";
}

TEST(WeightsFile, HoldsEveryTensor) {
  const TempDir dir;
  const std::vector<TensorSpec> tensors = {{"layer/weight", {2, 3}}, {"scale", {}}};
  const std::vector<float> weights = {0, 1, 2, 3, 4, 5, 6};
  const auto path = dir.file("weights.h5");
  save_weights(path, tensors, weights);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const hid_t dataset = H5Dopen2(file, "layer/weight", H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  hsize_t shape[2] = {};
  EXPECT_EQ(H5Sget_simple_extent_dims(space, shape, nullptr), 2);
  EXPECT_EQ(shape[0], 2U);
  EXPECT_EQ(shape[1], 3U);
  float values[6] = {};
  H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  EXPECT_EQ(values[5], 5.0F);
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(file);
  EXPECT_THROW(save_weights(path, tensors, std::span(weights).first(6)), UsageError);
  EXPECT_THROW(save_weights("/nowhere/weights.h5", tensors, weights), Hdf5Error);
}

}  // namespace
}  // namespace fluentps::trace
