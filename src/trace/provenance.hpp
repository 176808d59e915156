/// Where a trace comes from, as far as it can be known without MPI.
#pragma once

#include <string>

#include "trace/writer.hpp"

namespace fluentps::trace {

/// Version of the layout of the files (docs/trace-format.md).
inline constexpr const char* kSchema = "fluentps-trace/1";

/// schema, git, argv, versions, host, environment, origin_utc. origin_utc is the time of this call: call it right after
/// the barrier that starts the run's clocks. Starts no process, so it is safe after MPI_Init.
Attributes provenance();

/// For --version: one line each for fluentps (git) and what it was built with.
std::string version_text();

}  // namespace fluentps::trace
