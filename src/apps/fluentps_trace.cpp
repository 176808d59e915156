/// Looks at, merges, recovers, exports and verifies the trace of a run: fluentps-trace COMMAND RUN
#include <fmt/format.h>

#include <exception>

#include "apps/trace/trace_app.hpp"
#include "fluentps/error.hpp"

int main(int argc, char** argv) {
  try {
    return fluentps::app::run_trace_command(argc, argv);
  } catch (const fluentps::UsageError& error) {
    fmt::print(stderr, "fluentps-trace: {}\n", error.what());
    return fluentps::kExitUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fluentps-trace: {}\n", error.what());
    return fluentps::kExitFailure;
  }
}
