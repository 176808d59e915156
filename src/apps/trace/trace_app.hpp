/// The commands of fluentps-trace.
#pragma once

namespace fluentps::app {

/// Parses the command line and runs the command; prints to standard output. Returns the exit code: 3 where verify finds
/// a violation. Throws UsageError, RunError.
int run_trace_command(int argc, char** argv);

}  // namespace fluentps::app
