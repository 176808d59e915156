/// Signals, as flags: SIGUSR1 asks for a checkpoint and a resumable end, SIGTERM and SIGINT for an end at once.
#pragma once

namespace fluentps::app {

/// Once per process. Does nothing on a simulated cluster, whose ranks share a process.
void install_signals();

/// Whether SIGUSR1 has come.
bool stop_wanted();

/// Throws RunError when SIGTERM or SIGINT has come; unwinding then closes the trace.
void end_if_told();

}  // namespace fluentps::app
