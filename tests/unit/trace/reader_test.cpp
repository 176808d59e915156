/// Foreign, empty, truncated and hostile files end in a sentence, never in a crash, a hang or a big allocation.
#include "trace/reader.hpp"

#include <hdf5.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>

#include "fluentps/error.hpp"
#include "temp_dir.hpp"
#include "trace/hdf5_error.hpp"
#include "trace/merge.hpp"

namespace fluentps::trace {
namespace {

namespace fs = std::filesystem;

void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string write_worker(const std::string& path, std::uint32_t rows) {
  WorkerTrace trace({.path = path, .attributes = rank_attributes("worker", 0, 0)});
  for (std::uint32_t i = 0; i < rows; ++i) trace.add(iteration_row(i));
  trace.close();
  return path;
}

/// The sentence of the refusal, or "".
std::string refusal(const std::string& path) {
  try {
    load_run(path);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Reader, ForeignFilesAreRefused) {
  const TempDir dir;
  const auto path = dir.file("run.h5");
  std::mt19937 random(1);
  std::string noise(10'000, '\0');
  for (auto& each : noise) each = static_cast<char>(random());
  for (const auto& bytes :
       {std::string(), std::string("a text\n"), noise, std::string("\211HDF\r\n\032\n"), "\211HDF\r\n\032\n" + noise}) {
    write_bytes(path, bytes);
    EXPECT_NE(refusal(path).find(path), std::string::npos) << bytes.size() << " bytes";
  }
  EXPECT_NE(refusal("/nowhere").find("/nowhere cannot be read: No such file"), std::string::npos)
      << refusal("/nowhere");
  EXPECT_NE(refusal("/dev/null").find("is no file"), std::string::npos);
  const TempDir empty;
  EXPECT_NE(refusal(empty.path()).find("holds no trace"), std::string::npos);
}

TEST(Reader, OtherHdf5FilesAreRefused) {
  const TempDir dir;
  const auto path = dir.file("other.h5");
  quiet_hdf5();
  H5Fclose(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  EXPECT_NE(refusal(path).find("schema ''"), std::string::npos) << refusal(path);
}

TEST(Reader, TruncatedFilesAreRefusedOrRight) {
  const TempDir dir;
  const auto whole = read_bytes(write_worker(dir.file("rank-0000.h5"), 3000));
  const auto path = dir.file("cut.h5");
  std::size_t refused = 0;
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 97) {
    write_bytes(path, whole.substr(0, size));
    try {
      const auto rank = load_run(path).ranks.at(0);
      for (std::uint32_t i = 0; i < rank.iterations.size(); ++i)
        ASSERT_TRUE(equal(rank.iterations[i], iteration_row(i))) << size;
    } catch (const UsageError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 60U);
}

TEST(Reader, DamagedFilesDoNotCrashOrHang) {
  const TempDir dir;
  const auto whole = read_bytes(write_worker(dir.file("rank-0000.h5"), 3000));
  const auto path = dir.file("damaged.h5");
  const pid_t child = fork_child([&] {
    ::alarm(30);
    std::mt19937 random(5);
    for (int k = 0; k < 300; ++k) {
      auto bytes = whole;
      for (int flips = 0; flips < 4; ++flips)
        bytes[random() % (k % 2 == 0 ? 8192 : bytes.size())] = static_cast<char>(random());
      write_bytes(path, bytes);
      try {
        load_run(path);
      } catch (const RunError&) {
      } catch (const UsageError&) {
      }
    }
  });
  EXPECT_EQ(wait_for(child), 0);
}

/// A table that claims 10^15 rows, in a file of some kilobytes.
TEST(Reader, ClaimedRowsAreCheckedBeforeAllocation) {
  const TempDir dir;
  const auto path = write_worker(dir.file("rank-0000.h5"), 10);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const hid_t table = H5Dopen2(file, "/iterations", H5P_DEFAULT);
  const hsize_t rows = 1'000'000'000'000'000;
  ASSERT_GE(H5Dset_extent(table, &rows), 0);
  H5Dclose(table);
  H5Fclose(file);
  EXPECT_NE(refusal(path).find("it claims 1000000000000000 rows where the file has room for"), std::string::npos)
      << refusal(path);
}

/// Room that was made for rows which never came: they are left out, and it is said.
TEST(Reader, UnwrittenRowsAreLeftOut) {
  const TempDir dir;
  const auto path = write_worker(dir.file("rank-0000.h5"), 10);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t table = H5Dopen2(file, "/iterations", H5P_DEFAULT);
  const hsize_t rows = 15;
  ASSERT_GE(H5Dset_extent(table, &rows), 0);
  H5Dclose(table);
  H5Fclose(file);
  const auto run = load_run(path);
  EXPECT_EQ(run.ranks.at(0).iterations.size(), 10U);
  ASSERT_EQ(run.notes.size(), 1U);
  EXPECT_EQ(run.notes[0], "rank-0000: the last 5 rows of iterations were never written and are left out");
}

TEST(Reader, WrongTablesAreNamed) {
  const TempDir dir;
  const auto path = write_worker(dir.file("rank-0000.h5"), 1);
  hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Ldelete(file, "/pulls", H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_NE(refusal(path).find("table pulls of trace file " + path + ": it is missing"), std::string::npos)
      << refusal(path);
  file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hsize_t rows = 4;
  const hid_t space = H5Screate_simple(1, &rows, nullptr);
  H5Dclose(H5Dcreate2(file, "/pulls", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  H5Fclose(file);
  EXPECT_NE(refusal(path).find("its rows have no fields"), std::string::npos) << refusal(path);
}

TEST(Reader, TolerantReadingNotesWhatIsLeftOut) {
  const TempDir dir;
  write_worker(dir.file("rank-0000.h5"), 1);
  write_bytes(dir.file("rank-0001.h5"), "noise");
  EXPECT_NE(refusal(dir.path()), "");
  const auto run = load_run(dir.path(), true);
  EXPECT_EQ(run.ranks.size(), 1U);
  ASSERT_EQ(run.notes.size(), 1U);
  EXPECT_NE(run.notes[0].find("rank-0001.h5"), std::string::npos);
}

TEST(Reader, RanksBeyondFourDigitsKeepTheirOrder) {
  const TempDir dir;
  write_worker(dir.file("rank-10000.h5"), 1);
  write_worker(dir.file("rank-9999.h5"), 1);
  const auto files = rank_files(dir.path());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0], dir.file("rank-9999.h5"));
}

}  // namespace
}  // namespace fluentps::trace
