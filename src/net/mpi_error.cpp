#include "net/mpi_error.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace fluentps {
namespace {

std::string describe(int code, std::string_view call) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  int rank = -1;
  MPI_Error_string(code, text.data(), &length);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const auto name = call.substr(0, call.find('('));
  return fmt::format("{} failed on rank {}: {}", name, rank,
                     std::string_view(text.data(), static_cast<std::size_t>(length)));
}

}  // namespace

MpiError::MpiError(int code, const char* call) : RunError(describe(code, call)), code_(code) {}

}  // namespace fluentps
