/// SIGTERM and SIGINT, as a flag: a rank that is told to end leaves by an exception, and unwinding closes its trace.
#pragma once

namespace fluentps {

/// Once per process, by run_main. Does nothing on a simulated cluster, whose ranks share a process.
void install_ending_signals();

/// Throws RunError when SIGTERM or SIGINT has come. Called by sessions while they wait.
void end_if_told();

}  // namespace fluentps
