/// Starting and ending MPI for a program: environment, initialization, and one rank's failure made everyone's.
#pragma once

#include <functional>

namespace fluentps {

/// Runs `body` between MPI_Init and MPI_Finalize and returns its exit code. Before MPI_Init the rank is told to give
/// its core away while idle where more ranks than cores share the node; a setting of the user wins.
///
/// An exception that leaves `body` is printed with rank and host. UsageError, which the collective calls of the library
/// throw on all ranks alike, is printed once and returned as exit code 2; anything else ends the whole job with
/// MPI_Abort and exit code 3 within seconds. SIGTERM and SIGINT, which the launcher then sends to the other ranks, end
/// their sessions by a RunError, so that every rank's trace is complete.
int run_main(int* argc, char*** argv, const std::function<int()>& body);

}  // namespace fluentps
