/// Whether MPI yields, as its own settings say.
#include <cstdlib>
#include <string_view>

#include "mpi_test.hpp"
#include "net/mpi_yield.hpp"

namespace fluentps::test {

const char* const kRanks = "2";

namespace {

using YieldTest = MpiTest;

TEST_F(YieldTest, IsReadFromMpi) {
  const char* set = std::getenv("OMPI_MCA_mpi_yield_when_idle");
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(mpi_yields(), std::string_view(set) == "1");
}

}  // namespace
}  // namespace fluentps::test
