/// One file per run out of the files of its ranks.
#pragma once

#include <string>
#include <vector>

namespace fluentps::trace {

/// Merges rank-*.h5 of a run's folder into run.h5 and returns its path. Called by one rank, or at any time later, also
/// while the run goes on. The rank files stay. run.h5 appears whole or not at all: it is written under another name,
/// brought to the disk and renamed. Throws UsageError on a rank file that cannot be read, Hdf5Error or RunError where
/// run.h5 cannot be written.
std::string merge(const std::string& run_dir);

struct Recovery {
  std::string merged;              ///< path of run.h5
  std::vector<std::string> notes;  ///< one sentence for each file that was left out, cut or is still being written
};

/// After a crash: merges all that can be read, leaving out files that cannot. run.h5 opens in any HDF5 program. The
/// rank files are not touched: clearing the marks of their killed writers (h5clear -s) makes HDF5 cut them at an end
/// that may be older than their last rows (docs/trace-format.md, "Crash safety").
Recovery recover(const std::string& run_dir);

}  // namespace fluentps::trace
