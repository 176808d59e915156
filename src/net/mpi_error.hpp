/// MPI calls checked: every return code, also of windows (which do not inherit the communicator's error handler).
#pragma once

#include <mpi.h>

#include "fluentps/error.hpp"

namespace fluentps {

class MpiError : public RunError {
 public:
  MpiError(int code, const char* call);
  int code() const { return code_; }

 private:
  int code_;
};

/// Throws MpiError unless `code` is MPI_SUCCESS. Never compiled out.
inline void mpi_check(int code, const char* call) {
  if (code != MPI_SUCCESS) [[unlikely]]
    throw MpiError(code, call);
}

}  // namespace fluentps

#define FLUENTPS_MPI(call) ::fluentps::mpi_check((call), #call)
