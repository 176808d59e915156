/// One run of fluentps-train, from parsed options to the table at the end.
#pragma once

#include "apps/train/config.hpp"

namespace fluentps::app {

/// Collective over MPI_COMM_WORLD. Returns the exit code; throws as the library does.
int run_training(const Config& config, int argc, const char* const* argv);

}  // namespace fluentps::app
