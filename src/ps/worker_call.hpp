/// What a call of Worker needs; the same sentences for all kinds of workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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
/// Throws UsageError where push_pull was given buffers that overlap: weights may arrive while the update is sent.
void require_apart(WorkerIndex index, std::span<const float> update, std::span<const float> weights);
/// Throws UsageError where initialize was called before.
void require_first_initialize(WorkerIndex index, bool initialized);

}  // namespace fluentps
