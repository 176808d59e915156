#include "net/mpi_clock.hpp"

#include <mpi.h>
#include <unistd.h>
#ifdef FLUENTPS_SIMULATED
#include <simgrid/host.h>
#endif

#include <limits>

#include "net/mpi_error.hpp"

namespace fluentps {
namespace {

constexpr int kExchanges = 5;
constexpr int kTag = 7;
constexpr std::int64_t kMicrosecond = 1000;
constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

MpiClock::MpiClock() : origin_s_(MPI_Wtime()) {}

void MpiClock::synchronize(MPI_Comm comm) {
  FLUENTPS_MPI(MPI_Barrier(comm));
  origin_s_ = MPI_Wtime();
  measure_offset(comm);
}

/// Cristian's algorithm: the peer's time is taken for the middle of the exchange; the shortest exchange counts.
void MpiClock::measure_offset(MPI_Comm comm) {
  int rank = 0;
  int size = 0;
  FLUENTPS_MPI(MPI_Comm_rank(comm, &rank));
  FLUENTPS_MPI(MPI_Comm_size(comm, &size));
  if (rank == 0) {
    for (int peer = 1; peer < size; ++peer)
      for (int k = 0; k < kExchanges; ++k) {
        FLUENTPS_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, peer, kTag, comm, MPI_STATUS_IGNORE));
        const std::int64_t now = now_ns();
        FLUENTPS_MPI(MPI_Send(&now, 1, MPI_INT64_T, peer, kTag, comm));
      }
    return;
  }
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (int k = 0; k < kExchanges; ++k) {
    const std::int64_t before = now_ns();
    std::int64_t there = 0;
    FLUENTPS_MPI(MPI_Send(nullptr, 0, MPI_BYTE, 0, kTag, comm));
    FLUENTPS_MPI(MPI_Recv(&there, 1, MPI_INT64_T, 0, kTag, comm, MPI_STATUS_IGNORE));
    const std::int64_t after = now_ns();
    // The first exchanges wait for rank 0 to come round; they are long and lose.
    if (after - before >= shortest) continue;
    shortest = after - before;
    offset_ns_ = before + shortest / 2 - there;
  }
}

std::int64_t MpiClock::now_ns() const { return static_cast<std::int64_t>((MPI_Wtime() - origin_s_) * 1e9); }

#ifdef FLUENTPS_SIMULATED
double MpiClock::speed() const { return sg_host_get_speed(sg_host_self()) * 1e-9; }
#else
double MpiClock::speed() const { return 1; }
#endif

void MpiClock::sleep_ns(std::int64_t duration_ns) {
  if (duration_ns <= 0) return;
  // sleep + usleep: the two calls that SimGrid intercepts; POSIX limits usleep to below one second.
  if (duration_ns >= kSecond) ::sleep(static_cast<unsigned>(duration_ns / kSecond));
  const auto rest_us = (duration_ns % kSecond + kMicrosecond - 1) / kMicrosecond;
  if (rest_us > 0) ::usleep(static_cast<useconds_t>(rest_us == 1'000'000 ? 999'999 : rest_us));
}

}  // namespace fluentps
