/// What the library throws, and the exit codes that go with it.
#pragma once

#include <stdexcept>

namespace fluentps {

enum ExitCode : int {
  kExitDone = 0,
  kExitUsage = 2,      ///< usage, configuration, data or preflight: nothing was started, nothing was written
  kExitFailure = 3,    ///< run-time failure: stall, non-finite values, lost rank
  kExitResumable = 75  ///< stopped by a signal after a checkpoint
};

/// The user's mistake. The text says what is wrong, what was found and how to mend it, in one sentence.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A run that cannot go on: stall, non-finite values, lost rank, full disk.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A message that breaks the protocol (duplicate push, unknown iteration, wrong length): names who sent what and
/// what was expected. Nothing has been changed when it is thrown.
class ProtocolError : public RunError {
 public:
  using RunError::RunError;
};

}  // namespace fluentps
