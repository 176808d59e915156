/// One-sided windows: what is put is there, and what is out of bounds moves nothing.
#include "net/window.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "mpi_test.hpp"

namespace fluentps::test {

const char* const kRanks = "2 5";

namespace {

constexpr std::int64_t kBytes = 1000;

class WindowTest : public MpiTest {
 protected:
  /// The last rank exposes memory, as a server does; the others none.
  std::int64_t own_bytes() const { return rank() == ranks() - 1 ? kBytes : 0; }
  int target() const { return ranks() - 1; }
};

TEST_F(WindowTest, PutIsVisibleAfterFlushAndMessage) {
  Window window(MPI_COMM_WORLD, own_bytes(), "test");
  if (rank() != target()) {
    const std::vector<std::byte> data(100, static_cast<std::byte>(rank() + 1));
    window.put(target(), rank() * 100, data);
    window.flush(target());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == target()) {
    window.sync();
    for (int r = 0; r < target(); ++r)
      for (int k = 0; k < 100; ++k)
        ASSERT_EQ(window.memory()[static_cast<std::size_t>(r * 100 + k)], static_cast<std::byte>(r + 1));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(WindowTest, RanksOfOneNodeShareMemoryUnlessComponentsAreChosen) {
  const Window window(MPI_COMM_WORLD, own_bytes(), "test");
  EXPECT_EQ(window.shared(), std::getenv("OMPI_MCA_osc") == nullptr);
}

TEST_F(WindowTest, MemoryBeginsOnACacheLine) {
  for (int k = 0; k < 3; ++k) {
    Window window(MPI_COMM_WORLD, own_bytes(), "test");
    if (rank() == target()) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(window.memory().data()) % 64, 0U);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_F(WindowTest, GetReadsWhatIsThere) {
  Window window(MPI_COMM_WORLD, own_bytes(), "test");
  if (rank() == target())
    for (std::size_t k = 0; k < window.memory().size(); ++k) window.memory()[k] = static_cast<std::byte>(k % 251);
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<std::byte> read(10);
  window.get(target(), 990, read);
  window.flush(target());
  for (std::size_t k = 0; k < 10; ++k) EXPECT_EQ(read[k], static_cast<std::byte>((990 + k) % 251));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_F(WindowTest, OutOfBoundsIsRefusedWithRankAndLimitAndMovesNothing) {
  Window window(MPI_COMM_WORLD, own_bytes(), "test");
  std::vector<std::byte> ten(10, std::byte{1});
  std::vector<std::byte> none;
  std::fill(window.memory().begin(), window.memory().end(), std::byte{0});
  MPI_Barrier(MPI_COMM_WORLD);
  // At the end, one past, far past, negative; nothing at the end is fine, nothing past it is not.
  for (const std::int64_t offset : {kBytes, kBytes - 9, std::int64_t{1} << 40, std::int64_t{-1}}) {
    EXPECT_THROW(window.put(target(), offset, ten), RangeError) << offset;
    EXPECT_THROW(window.get(target(), offset, ten), RangeError) << offset;
  }
  EXPECT_NO_THROW(window.put(target(), kBytes, none));
  EXPECT_THROW(window.put(target(), kBytes + 1, none), RangeError);
  EXPECT_THROW(window.put(ranks(), 0, ten), RangeError);
  EXPECT_THROW(window.put(0, 0, ten), RangeError) << "a worker exposes nothing";
  try {
    window.put(target(), kBytes - 9, ten);
  } catch (const RangeError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("rank " + std::to_string(target())), std::string::npos) << text;
    EXPECT_NE(text.find("1000 bytes"), std::string::npos) << text;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == target()) {
    EXPECT_TRUE(std::none_of(window.memory().begin(), window.memory().end(), [](auto b) { return b == std::byte{1}; }));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace fluentps::test
