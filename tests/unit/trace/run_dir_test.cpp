/// A run gets a folder of its own, whatever is there already; provenance says where a trace comes from.
#include "trace/run_dir.hpp"

#include <fstream>
#include <regex>
#include <set>

#include "fluentps/error.hpp"
#include "temp_dir.hpp"
#include "trace/attributes.hpp"
#include "trace/provenance.hpp"

namespace fluentps::trace {
namespace {

namespace fs = std::filesystem;

TEST(RunDir, NeverUsesANameTwice) {
  const TempDir dir;
  const auto out = dir.file("deep/results ü");
  EXPECT_EQ(create_run_dir(out, "a b ç"), out + "/a b ç");
  EXPECT_EQ(create_run_dir(out, "a b ç"), out + "/a b ç-r1");
  EXPECT_EQ(create_run_dir(out, "a b ç"), out + "/a b ç-r2");
  EXPECT_TRUE(fs::is_directory(out + "/a b ç-r2"));
  std::ofstream(out + "/file") << "no folder";
  EXPECT_EQ(create_run_dir(out, "file"), out + "/file-r1");
}

TEST(RunDir, ProcessesThatStartTogetherGetDifferentFolders) {
  const TempDir dir;
  constexpr int kProcesses = 8;
  std::vector<pid_t> children;
  for (int k = 0; k < kProcesses; ++k)
    children.push_back(fork_child([&] {
      for (int i = 0; i < 10; ++i) std::ofstream(create_run_dir(dir.path(), "same") + "/" + std::to_string(::getpid()));
    }));
  for (const auto child : children) EXPECT_EQ(wait_for(child), 0);
  int folders = 0;
  for (const auto& each : fs::directory_iterator(dir.path())) {
    ++folders;
    EXPECT_EQ(std::distance(fs::directory_iterator(each.path()), fs::directory_iterator()), 1) << each.path();
  }
  EXPECT_EQ(folders, 10 * kProcesses);
}

TEST(RunDir, DefaultIdIsTimeAndModel) {
  EXPECT_TRUE(std::regex_match(default_run_id("synthetic:params=5"), std::regex("[0-9]{8}T[0-9]{6}Z-synthetic")))
      << default_run_id("synthetic:params=5");
  EXPECT_TRUE(std::regex_match(default_run_id(""), std::regex("[0-9]{8}T[0-9]{6}Z")));
  const TempDir dir;
  EXPECT_TRUE(
      std::regex_search(create_run_dir(dir.path(), "", "resnet56"), std::regex("/[0-9]{8}T[0-9]{6}Z-resnet56$")));
}

TEST(RunDir, BadPlacesAndNamesAreUsageErrors) {
  const TempDir dir;
  for (const auto& id : std::vector<std::string>{".", "..", "a/b", "/a", std::string(300, 'x')})
    EXPECT_THROW(create_run_dir(dir.path(), id), UsageError) << id;
  std::ofstream(dir.file("file")) << "no folder";
  try {
    create_run_dir(dir.file("file"), "a");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("--out '" + dir.file("file") + "'"), std::string::npos) << error.what();
  }
  EXPECT_THROW(create_run_dir("/proc/nowhere", "a"), UsageError);
  EXPECT_THROW(create_run_dir("", "a"), UsageError);
}

TEST(RunDir, RankFilesAreNumbered) {
  EXPECT_EQ(rank_file_name(0), "rank-0000.h5");
  EXPECT_EQ(rank_file_name(137), "rank-0137.h5");
  EXPECT_EQ(rank_file_name(12345), "rank-12345.h5");
}

TEST(Provenance, NamesWhatTheTraceComesFrom) {
  ::setenv("OMPI_TEST_OF_FLUENTPS", "a b", 1);
  ::setenv("SECRET_OF_FLUENTPS", "hidden", 1);
  const auto attributes = provenance();
  std::set<std::string> names;
  for (const auto& [name, value] : attributes) {
    names.insert(name);
    EXPECT_FALSE(value.empty()) << name;
  }
  EXPECT_EQ(names, (std::set<std::string>{"schema", "git", "argv", "versions", "host", "environment", "origin_utc"}));
  EXPECT_EQ(value_of(attributes, "schema"), "fluentps-trace/1");
  EXPECT_NE(value_of(attributes, "environment").find("OMPI_TEST_OF_FLUENTPS=a b\n"), std::string::npos);
  EXPECT_EQ(value_of(attributes, "environment").find("SECRET"), std::string::npos);
  EXPECT_NE(value_of(attributes, "versions").find("HDF5 1."), std::string::npos);
  EXPECT_NE(value_of(attributes, "argv").find("unit-trace"), std::string::npos);
  EXPECT_TRUE(std::regex_match(value_of(attributes, "origin_utc"),
                               std::regex("\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z")));
}

}  // namespace
}  // namespace fluentps::trace
