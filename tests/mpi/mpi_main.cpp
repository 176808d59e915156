/// main of the tests under mpirun; all ranks print their failures, rank 0 prints the rest.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "mpi_test.hpp"

namespace fluentps::test {
namespace {

/// A test that hangs ends here, with the signal's message naming the process.
constexpr unsigned kWatchdog_s = 120;

/// Failures of ranks other than 0, which have no other printer.
class FailurePrinter : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank, result.file_name() != nullptr ? result.file_name() : "?",
                 result.line_number(), result.message());
  }
};

}  // namespace

int MpiTest::rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int MpiTest::ranks() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

void MpiTest::SetUp() { ::alarm(kWatchdog_s); }

void MpiTest::TearDown() {
  const int own = HasFailure() ? 1 : 0;
  int any = 0;
  MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (any != 0 && own == 0) ADD_FAILURE() << "failed on another rank";
  ::alarm(0);
}

}  // namespace fluentps::test

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--ranks") == 0) {
    std::puts(fluentps::test::kRanks);
    return 0;
  }
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ::testing::InitGoogleTest(&argc, argv);
  if (rank != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    delete listeners.Release(listeners.default_xml_generator());
    listeners.Append(new fluentps::test::FailurePrinter);
  }
  const int result = RUN_ALL_TESTS();
  MPI_Finalize();
  return result;
}
