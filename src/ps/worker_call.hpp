/// What a call of Worker needs; the same sentences for all kinds of workers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fluentps/types.hpp"

namespace fluentps {

struct WorkerCall {
  WorkerIndex index;
  const char* name;  ///< "push"
  bool initialized;
  std::size_t given;  ///< elements
  std::int64_t wanted;
};

/// Throws UsageError: before initialize, or another length.
void require_call(const WorkerCall& call);
/// Throws UsageError where initialize was called before.
void require_first_initialize(WorkerIndex index, bool initialized);

}  // namespace fluentps
