#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>

#include "fluentps/error.hpp"
#include "fluentps/mpi.hpp"
#include "net/ending.hpp"
#include "net/mpi_yield.hpp"

namespace fluentps {
namespace {

constexpr int kAgreementTries = 500;
constexpr useconds_t kAgreementNap_us = 10'000;

std::string where() {
  int rank = 0;
  std::array<char, MPI_MAX_PROCESSOR_NAME> host{};
  int length = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Get_processor_name(host.data(), &length);
  return fmt::format("rank {} on {}", rank, host.data());
}

/// Whether every rank came here within some seconds: then the error is everyone's, and one of them prints it.
bool everyone_is_here() {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  for (int tries = 0; tries < kAgreementTries; ++tries) {
    int done = 0;
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return true;
    ::usleep(kAgreementNap_us);
  }
  return false;
}

int end_with_usage(const std::string& error) {
  const bool common = everyone_is_here();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (!common) {
    fmt::print(stderr, "fluentps: {}: {}\n", where(), error);
    MPI_Abort(MPI_COMM_WORLD, kExitUsage);
  }
  if (rank == 0) fmt::print(stderr, "fluentps: {}\n", error);
  MPI_Finalize();
  return kExitUsage;
}

/// A step of several tasks whose ranks were told nothing of each other. Open MPI built with Slurm's PMI ends in
/// MPI_Init then, with advice on how to build it.
bool started_by_srun_without_pmi() {
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks == nullptr || std::getenv("SLURM_STEP_ID") == nullptr || std::atoi(tasks) < 2) return false;
  for (const char* name : {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_SIZE"})
    if (std::getenv(name) != nullptr) return false;
  return true;
}

}  // namespace

int run_main(int* argc, char*** argv, const std::function<int()>& body) {
  if (started_by_srun_without_pmi()) {
    const char* task = std::getenv("SLURM_PROCID");
    if (task == nullptr || std::atoi(task) == 0)
      fmt::print(
          stderr,
          "fluentps: srun started {} tasks without MPI between them; start with srun --mpi=pmix (srun --mpi=list "
          "names what there is), or with mpirun\n",
          std::getenv("SLURM_STEP_NUM_TASKS"));
    return kExitUsage;
  }
  install_ending_signals();
  yield_when_crowded();
  if (MPI_Init(argc, argv) != MPI_SUCCESS) {
    fmt::print(stderr, "fluentps: MPI_Init failed\n");
    return kExitFailure;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::optional<std::string> usage;
  try {
    const int code = body();
    MPI_Finalize();
    return code;
  } catch (const UsageError& error) {
    // Ended below: the ranks of a simulated cluster share a thread, and one that waits for others while it handles an
    // exception mixes it up with theirs.
    usage = error.what();
  } catch (const std::exception& error) {
    fmt::print(stderr, "fluentps: {}: {}\n", where(), error.what());
  } catch (...) {
    fmt::print(stderr, "fluentps: {}: an exception that is not a std::exception\n", where());
  }
  if (usage) return end_with_usage(*usage);
  std::fflush(nullptr);
  // Not MPI_Finalize: the others are waiting for this rank and would wait for ever.
  MPI_Abort(MPI_COMM_WORLD, kExitFailure);
  return kExitFailure;
}

}  // namespace fluentps
