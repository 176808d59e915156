/// Readers during writing, and writers killed at random moments: never a wrong row, never a flushed row lost.
#include <hdf5.h>
#include <unistd.h>

#include <random>

#include "temp_dir.hpp"
#include "trace/merge.hpp"

namespace fluentps::trace {
namespace {

constexpr int kKills = 25;

/// Writes for ever, with flushes at random places; `flushed` counts iterations that a flush has covered.
void write_for_ever(const std::string& path, unsigned seed, std::atomic<std::uint64_t>& flushed) {
  std::mt19937 random(seed);
  WorkerTrace trace({.path = path, .attributes = rank_attributes("worker", 0, 0)});
  for (std::uint32_t i = 0;; ++i) {
    trace.add(iteration_row(i));
    for (int server = 0; server < 3; ++server) trace.add(worker_pull_row(3 * i + static_cast<std::uint32_t>(server)));
    if (random() % 500 != 0) continue;
    trace.flush();
    flushed.store(i + 1);
  }
}

void expect_right(const RankData& rank, std::uint64_t flushed, const char* when) {
  SCOPED_TRACE(when);
  EXPECT_GE(rank.iterations.size(), flushed);
  EXPECT_GE(rank.worker_pulls.size(), 3 * flushed);
  for (std::uint32_t i = 0; i < rank.iterations.size(); ++i)
    ASSERT_TRUE(equal(rank.iterations[i], iteration_row(i))) << i;
  for (std::uint32_t i = 0; i < rank.worker_pulls.size(); ++i)
    ASSERT_TRUE(equal(rank.worker_pulls[i], worker_pull_row(i))) << i;
}

void wait_until_begun(std::atomic<std::uint64_t>& flushed) {
  for (int tries = 0; flushed.load() == 0 && tries < 10'000; ++tries) ::usleep(500);
}

TEST(Crash, KilledWriterLeavesEveryFlushedRow) {
  std::mt19937 random(20191002);
  std::uint64_t total = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    const TempDir dir;
    const auto path = dir.file("rank-0000.h5");
    SharedCounter flushed;
    const pid_t child = fork_child([&] { write_for_ever(path, static_cast<unsigned>(kill), *flushed); });
    wait_until_begun(*flushed);
    ::usleep(random() % 60'000);
    const auto covered = (*flushed).load();
    ::kill(child, SIGKILL);
    wait_for(child);
    ASSERT_GT(covered, 0U);
    total += covered;

    const auto rank = load_run(path).ranks.at(0);
    EXPECT_FALSE(rank.done);
    expect_right(rank, covered, "as the kill left it");

    const auto recovery = recover(dir.path());
    EXPECT_TRUE(recovery.notes.empty()) << recovery.notes.front();
    expect_right(load_run(recovery.merged).ranks.at(0), covered, "merged");
    const hid_t plain = H5Fopen(recovery.merged.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    EXPECT_GE(plain, 0) << "other programs cannot open the merged file";
    H5Fclose(plain);
  }
  std::printf("%d writers killed, %llu iterations covered by their flushes\n", kKills,
              static_cast<unsigned long long>(total));
}

TEST(Crash, ReaderSeesAGrowingPrefix) {
  const TempDir dir;
  const auto path = dir.file("rank-0000.h5");
  SharedCounter flushed;
  const pid_t child = fork_child([&] { write_for_ever(path, 7, *flushed); });
  wait_until_begun(*flushed);
  std::size_t before = 0;
  for (int look = 0; look < 20; ++look) {
    const auto covered = (*flushed).load();
    const auto rank = load_run(path).ranks.at(0);
    EXPECT_GE(rank.iterations.size(), before);
    before = rank.iterations.size();
    expect_right(rank, covered, "while writing");
    if (before > 300'000) break;
  }
  ::kill(child, SIGKILL);
  wait_for(child);
  EXPECT_GT(before, 0U);
}

TEST(Crash, LiveWriterIsReadAndNamed) {
  const TempDir dir;
  const auto path = dir.file("rank-0000.h5");
  SharedCounter flushed;
  const pid_t child = fork_child([&] { write_for_ever(path, 8, *flushed); });
  wait_until_begun(*flushed);
  const auto covered = (*flushed).load();
  const auto recovery = recover(dir.path());
  ::kill(child, SIGKILL);
  wait_for(child);
  ASSERT_EQ(recovery.notes.size(), 1U);
  EXPECT_NE(recovery.notes[0].find("still at work"), std::string::npos) << recovery.notes[0];
  expect_right(load_run(recovery.merged).ranks.at(0), covered, "merged");
}

}  // namespace
}  // namespace fluentps::trace
