/// Replays the corpus through one fuzz target: tests/fuzz/corpus/NAME, each file a case that must end without a crash.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

TEST(Corpus, EveryFileIsReadOrRefused) {
  int files = 0;
  for (const auto& each : std::filesystem::directory_iterator(FLUENTPS_CORPUS)) {
    std::ifstream in(each.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    SCOPED_TRACE(each.path());
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()), 0);
    ++files;
  }
  EXPECT_GT(files, 0) << "the corpus " << FLUENTPS_CORPUS << " is empty";
}
