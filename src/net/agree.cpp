#include "net/agree.hpp"

#include <fmt/format.h>

#include <exception>
#include <sstream>
#include <string>

#include "fluentps/error.hpp"
#include "net/mpi_error.hpp"

namespace fluentps {
namespace {

enum Kind : int { kFine = 0, kUsageFailure = 1, kRunFailure = 2 };

struct Failure {
  Kind kind = kFine;
  std::string text;
};

Failure attempt(const std::function<void()>& step) {
  try {
    step();
    return {};
  } catch (const UsageError& error) {
    return {kUsageFailure, error.what()};
  } catch (const std::exception& error) {
    return {kRunFailure, error.what()};
  }
}

}  // namespace

std::string broadcast(MPI_Comm comm, std::string text, int root) {
  auto length = static_cast<int>(text.size());
  FLUENTPS_MPI(MPI_Bcast(&length, 1, MPI_INT, root, comm));
  text.resize(static_cast<std::size_t>(length));
  FLUENTPS_MPI(MPI_Bcast(text.data(), length, MPI_CHAR, root, comm));
  return text;
}

void agree(MPI_Comm comm, const std::function<void()>& step) {
  const Failure own = attempt(step);
  int rank = 0;
  int size = 0;
  FLUENTPS_MPI(MPI_Comm_rank(comm, &rank));
  FLUENTPS_MPI(MPI_Comm_size(comm, &size));
  const int claim = own.kind == kFine ? size : rank;
  int first = size;
  FLUENTPS_MPI(MPI_Allreduce(&claim, &first, 1, MPI_INT, MPI_MIN, comm));
  if (first == size) return;

  int failures = 0;
  const int failed = own.kind != kFine ? 1 : 0;
  FLUENTPS_MPI(MPI_Allreduce(&failed, &failures, 1, MPI_INT, MPI_SUM, comm));
  int kind = own.kind;
  FLUENTPS_MPI(MPI_Bcast(&kind, 1, MPI_INT, first, comm));
  auto text = broadcast(comm, own.text, first);
  if (failures < size) text = fmt::format("rank {}: {}", first, text);
  if (kind == kUsageFailure) throw UsageError(text);
  throw RunError(text);
}

void require_same(MPI_Comm comm, const std::string& text) {
  const auto expected = broadcast(comm, text, 0);
  agree(comm, [&] {
    std::istringstream here(text);
    std::istringstream there(expected);
    while (here || there) {
      std::string own;
      std::string first;
      std::getline(here, own);
      std::getline(there, first);
      if (own != first)
        throw UsageError(
            fmt::format("the configuration differs from rank 0's: '{}' here, '{}' there; start all ranks with "
                        "the same options",
                        own, first));
    }
  });
}

}  // namespace fluentps
