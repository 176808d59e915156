/// Tests under mpirun: every rank runs every test; a failure of any rank is a failure of all, and is shown.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdint>

namespace fluentps::test {

/// Defined by each test program: the rank counts it is to be run with, e.g. "2 5". `program --ranks` prints it.
extern const char* const kRanks;

class MpiTest : public ::testing::Test {
 protected:
  void SetUp() override;
  /// Collective: a test that failed anywhere fails everywhere.
  void TearDown() override;

  static int rank();
  static int ranks();
  /// Servers of the run: 1 on two ranks, else 2.
  static std::uint32_t servers() { return ranks() == 2 ? 1 : 2; }
};

}  // namespace fluentps::test
