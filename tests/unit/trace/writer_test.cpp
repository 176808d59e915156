/// Rows written are the rows read; files grow with rows, not with flushes; failures are sentences.
#include "trace/writer.hpp"

#include <hdf5.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "temp_dir.hpp"
#include "trace/attributes.hpp"
#include "trace/hdf5_error.hpp"
#include "trace/run_dir.hpp"

namespace fluentps::trace {
namespace {

namespace fs = std::filesystem;

WriterOptions worker_options(const std::string& path) {
  return {.path = path, .attributes = rank_attributes("worker", 4, 2), .clock_offset_ns = -17};
}

TEST(Writer, WorkerTablesComeBack) {
  const TempDir dir;
  WorkerTrace trace(worker_options(dir.file("rank-0004.h5")));
  constexpr std::uint32_t kRows = 5000;  // more than two chunks
  for (std::uint32_t i = 0; i < kRows; ++i) {
    trace.add(iteration_row(i));
    trace.add(worker_pull_row(i));
  }
  trace.add(EvaluationRow{.iteration = 7, .time_ns = 99, .test_loss = 0.5F, .test_accuracy = 0.75F});
  trace.close();
  const auto run = load_run(dir.path());
  ASSERT_EQ(run.ranks.size(), 1U);
  const auto& rank = run.ranks[0];
  EXPECT_FALSE(rank.server);
  EXPECT_EQ(rank.rank, 4);
  EXPECT_EQ(rank.index, 2U);
  EXPECT_TRUE(rank.done);
  EXPECT_EQ(rank.name, "rank-0004");
  EXPECT_EQ(value_of(rank.attributes, "clock_offset_ns"), "-17");
  EXPECT_EQ(value_of(rank.attributes, "host"), "node7");
  EXPECT_EQ(value_of(rank.attributes, "run_id"), fs::path(dir.path()).filename().string());
  ASSERT_EQ(rank.iterations.size(), kRows);
  ASSERT_EQ(rank.worker_pulls.size(), kRows);
  for (std::uint32_t i = 0; i < kRows; ++i) {
    ASSERT_TRUE(equal(rank.iterations[i], iteration_row(i))) << i;
    ASSERT_TRUE(equal(rank.worker_pulls[i], worker_pull_row(i))) << i;
  }
  ASSERT_EQ(rank.evaluations.size(), 1U);
  EXPECT_EQ(rank.evaluations[0].iteration, 7U);
  EXPECT_EQ(rank.evaluations[0].time_ns, 99U);
  EXPECT_EQ(rank.evaluations[0].test_loss, 0.5F);
  EXPECT_EQ(rank.evaluations[0].test_accuracy, 0.75F);
}

TEST(Writer, ServerTablesComeBack) {
  const TempDir dir;
  ServerTrace trace({.path = dir.file("rank-0000.h5"), .attributes = rank_attributes("server", 0, 0)});
  trace.add(
      PushRow{.worker = 1, .iteration = 2, .arrive_ns = 3, .applied_ns = 4, .bytes = 5, .staleness = 6, .late = 1});
  trace.add(ServerPullRow{
      .worker = 7, .iteration = 8, .request_ns = 9, .answer_ns = 10, .v_request = 11, .v_answer = 12, .delayed = 1});
  trace.add(AdvanceRow{.v = 13, .time_ns = 14});
  trace.close();
  const auto rank = load_run(dir.file("rank-0000.h5")).ranks.at(0);
  EXPECT_TRUE(rank.server);
  ASSERT_EQ(rank.pushes.size(), 1U);
  const auto& push = rank.pushes[0];
  EXPECT_EQ(push.worker, 1);
  EXPECT_EQ(push.iteration, 2U);
  EXPECT_EQ(push.arrive_ns, 3U);
  EXPECT_EQ(push.applied_ns, 4U);
  EXPECT_EQ(push.bytes, 5U);
  EXPECT_EQ(push.staleness, 6U);
  EXPECT_EQ(push.late, 1);
  ASSERT_EQ(rank.server_pulls.size(), 1U);
  const auto& pull = rank.server_pulls[0];
  EXPECT_EQ(pull.worker, 7);
  EXPECT_EQ(pull.iteration, 8U);
  EXPECT_EQ(pull.request_ns, 9U);
  EXPECT_EQ(pull.answer_ns, 10U);
  EXPECT_EQ(pull.v_request, 11U);
  EXPECT_EQ(pull.v_answer, 12U);
  EXPECT_EQ(pull.delayed, 1);
  ASSERT_EQ(rank.advances.size(), 1U);
  EXPECT_EQ(rank.advances[0].v, 13U);
  EXPECT_EQ(rank.advances[0].time_ns, 14U);
}

/// The layout of the format page, read with plain HDF5 calls and not with our tables.
TEST(Writer, LayoutIsTheDocumentedOne) {
  const TempDir dir;
  const auto path = dir.file("rank-0001.h5");
  {
    WorkerTrace trace(worker_options(path));
    trace.add(iteration_row(41));
    trace.close();
  }
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  struct Part {
    std::uint64_t wait_ns;
    float lr;
  } part{};
  const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(Part));
  H5Tinsert(type, "wait_ns", HOFFSET(Part, wait_ns), H5T_NATIVE_UINT64);
  H5Tinsert(type, "lr", HOFFSET(Part, lr), H5T_NATIVE_FLOAT);
  const hid_t table = H5Dopen2(file, "/iterations", H5P_DEFAULT);
  ASSERT_GE(table, 0);
  const hid_t on_disk = H5Dget_type(table);
  EXPECT_EQ(H5Tget_size(on_disk), 60U);  // 4 + 5*8 + 2*4 + 8, packed
  EXPECT_EQ(H5Tget_nmembers(on_disk), 9);
  ASSERT_GE(H5Dread(table, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &part), 0);
  EXPECT_EQ(part.wait_ns, 41004U);
  EXPECT_EQ(part.lr, 41.25F);
  H5Tclose(on_disk);
  H5Tclose(type);
  H5Dclose(table);
  H5Fclose(file);
}

TEST(Writer, TimedFlushBringsRowsToTheFile) {
  const TempDir dir;
  auto options = worker_options(dir.file("rank-0004.h5"));
  options.flush_ns = 1000;
  WorkerTrace trace(options);
  const auto rows = [&] { return load_run(options.path).ranks.at(0).iterations.size(); };
  trace.maybe_flush(100);
  trace.add(iteration_row(0));
  trace.maybe_flush(1099);  // the row came after 100: at most 999 old
  EXPECT_EQ(rows(), 0U);
  trace.maybe_flush(1100);
  EXPECT_EQ(rows(), 1U);
  EXPECT_FALSE(load_run(options.path).ranks[0].done);
  trace.add(iteration_row(1));
  trace.flush();
  EXPECT_EQ(rows(), 2U);
}

TEST(Writer, ZeroFlushIntervalWritesEveryRow) {
  const TempDir dir;
  auto options = worker_options(dir.file("rank-0004.h5"));
  options.flush_ns = 0;
  WorkerTrace trace(options);
  for (std::uint32_t i = 0; i < 3; ++i) {
    trace.add(iteration_row(i));
    EXPECT_EQ(load_run(options.path).ranks.at(0).iterations.size(), i + 1);
  }
}

TEST(Writer, FlushesDoNotInflateTheFile) {
  const TempDir dir;
  const auto size_with = [&](const std::string& name, bool flush_each) {
    WorkerTrace trace(worker_options(dir.file(name)));
    for (std::uint32_t i = 0; i < 3000; ++i) {
      trace.add(iteration_row(i));
      if (flush_each) trace.flush();
    }
    trace.close();
    return fs::file_size(dir.file(name));
  };
  const auto once = size_with("rank-0000.h5", false);
  const auto often = size_with("rank-0001.h5", true);
  EXPECT_LE(often, once + 4096);
  EXPECT_LE(once, 2U * 2048 * 60 + 65536);  // two chunks of rows, and the file's own
}

TEST(Writer, LongAttributeComesBackWhole) {
  const TempDir dir;
  auto options = worker_options(dir.file("rank-0004.h5"));
  const std::string text(150'000, 'x');
  options.attributes.emplace_back("config", text);
  options.attributes.emplace_back("note", "Grüße, 世界");
  options.attributes.emplace_back("empty", "");
  options.attributes.emplace_back("twice", "first");
  options.attributes.emplace_back("twice", "last");
  WorkerTrace(options).close();
  const auto attributes = load_run(options.path).ranks.at(0).attributes;
  EXPECT_EQ(value_of(attributes, "config"), text);
  EXPECT_EQ(value_of(attributes, "note"), "Grüße, 世界");
  EXPECT_EQ(value_of(attributes, "empty", "missing"), "");
  EXPECT_EQ(value_of(attributes, "twice"), "last");
}

TEST(Writer, ExistingFileIsRefused) {
  const TempDir dir;
  const auto options = worker_options(dir.file("rank-0004.h5"));
  WorkerTrace first(options);
  first.add(iteration_row(0));
  first.close();
  try {
    WorkerTrace second(options);
    FAIL() << "an existing trace was opened";
  } catch (const Hdf5Error& error) {
    EXPECT_EQ(error.code(), EEXIST);
    EXPECT_EQ(error.call(), "H5Fcreate");
    EXPECT_NE(std::string(error.what()).find(options.path), std::string::npos);
  }
  EXPECT_EQ(load_run(options.path).ranks.at(0).iterations.size(), 1U);
}

TEST(Writer, MissingFolderIsNamed) {
  const auto options = worker_options("/nowhere/at all/rank-0004.h5");
  try {
    WorkerTrace trace(options);
    FAIL();
  } catch (const Hdf5Error& error) {
    EXPECT_EQ(std::string(error.what()),
              "trace file /nowhere/at all/rank-0004.h5: No such file or directory (H5Fcreate)");
  }
}

TEST(Writer, ClosedTraceTakesNoRows) {
  const TempDir dir;
  WorkerTrace trace(worker_options(dir.file("rank-0004.h5")));
  trace.close();
  trace.close();
  EXPECT_THROW(trace.add(iteration_row(0)), std::logic_error);
}

TEST(Writer, DestructionKeepsRowsAndSetsNoMark) {
  const TempDir dir;
  const auto options = worker_options(dir.file("rank-0004.h5"));
  { WorkerTrace(options).add(iteration_row(0)); }
  const auto rank = load_run(options.path).ranks.at(0);
  EXPECT_EQ(rank.iterations.size(), 1U);
  EXPECT_FALSE(rank.done);
}

/// A small file system of its own; null where that is not permitted.
class SmallDisk {
 public:
  SmallDisk(const TempDir& dir, const char* mount_options, unsigned long flags) : path_(dir.file("disk")) {
    fs::create_directory(path_);
    mounted_ = ::mount("fluentps-test", path_.c_str(), "tmpfs", flags, mount_options) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount(path_.c_str());
  }
  explicit operator bool() const { return mounted_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(Writer, FullDiskIsASentenceAndLosesNothingFlushed) {
  const TempDir dir;
  const SmallDisk disk(dir, "size=1m", 0);
  if (!disk) GTEST_SKIP() << "mounting a small file system needs root";
  const auto options = worker_options(disk.file("rank-0004.h5"));
  std::uint32_t added = 0;
  std::uint32_t flushed = 0;
  {
    WorkerTrace trace(options);
    try {
      for (; added < 100'000; ++added) {
        trace.add(iteration_row(added));
        if (added % 100 == 99) {
          trace.flush();
          flushed = added + 1;
        }
      }
      FAIL() << "6 MB went into 1 MiB";
    } catch (const Hdf5Error& error) {
      EXPECT_EQ(error.code(), ENOSPC) << error.what();
      EXPECT_NE(std::string(error.what()).find(options.path), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
    }
    EXPECT_THROW(trace.add(iteration_row(0)), std::logic_error);
  }
  const auto rank = load_run(options.path).ranks.at(0);
  EXPECT_FALSE(rank.done);
  EXPECT_GE(rank.iterations.size(), flushed);
  EXPECT_GT(flushed, 4000U);
  for (std::uint32_t i = 0; i < rank.iterations.size(); ++i)
    ASSERT_TRUE(equal(rank.iterations[i], iteration_row(i))) << i;
}

TEST(Writer, ReadOnlyFolderIsASentence) {
  const TempDir dir;
  const SmallDisk disk(dir, "size=1m", MS_RDONLY);
  if (!disk) GTEST_SKIP() << "mounting a read-only file system needs root";
  try {
    WorkerTrace trace(worker_options(disk.file("rank-0004.h5")));
    FAIL();
  } catch (const Hdf5Error& error) {
    EXPECT_EQ(error.code(), EROFS);
    EXPECT_NE(std::string(error.what()).find("rank-0004.h5: Read-only file system"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("--out"), std::string::npos);
  }
}

/// Whoever opens the file for writing must fail while the writer, another process, lives, and be told of the variable.
TEST(Writer, LockedFileNamesTheVariable) {
  const TempDir dir;
  const auto path = dir.file("rank-0004.h5");
  SharedCounter ready;
  const pid_t child = fork_child([&] {
    const WorkerTrace trace(worker_options(path));
    (*ready).store(1);
    ::pause();
  });
  for (int tries = 0; (*ready).load() == 0 && tries < 10'000; ++tries) ::usleep(500);
  quiet_hdf5();
  EXPECT_LT(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), 0);
  try {
    throw_hdf5_error("H5Fopen", path);
  } catch (const Hdf5Error& error) {
    EXPECT_NE(std::string(error.what()).find("HDF5_USE_FILE_LOCKING"), std::string::npos) << error.what();
    EXPECT_EQ(error.code(), EAGAIN);
  }
  ::kill(child, SIGKILL);
  wait_for(child);
}

}  // namespace
}  // namespace fluentps::trace
