/// SIGUSR1, as a flag: it asks for a checkpoint and a resumable end.
#pragma once

namespace fluentps::app {

/// Once per process. Does nothing on a simulated cluster, whose ranks share a process.
void install_stop_signal();

/// Whether SIGUSR1 has come.
bool stop_wanted();

}  // namespace fluentps::app
