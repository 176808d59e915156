#include "ps/worker_call.hpp"

#include <fmt/format.h>

#include <functional>

#include "fluentps/error.hpp"

namespace fluentps {

void require_call(const WorkerCall& call) {
  if (!call.initialized)
    throw UsageError(fmt::format("worker {}: {} before initialize; call initialize(weights) first on every worker",
                                 call.index.value, call.name));
  if (static_cast<std::int64_t>(call.given) != call.wanted)
    throw UsageError(fmt::format("worker {}: {} was given {} elements; the session's tensors have {}", call.index.value,
                                 call.name, call.given, call.wanted));
}

void require_apart(WorkerIndex index, std::span<const float> update, std::span<const float> weights) {
  const std::less<const float*> before;
  if (before(update.data(), weights.data() + weights.size()) && before(weights.data(), update.data() + update.size()))
    throw UsageError(fmt::format(
        "worker {}: push_pull was given an update and weights that overlap; give it a buffer of its own for each",
        index.value));
}

void require_first_initialize(WorkerIndex index, bool initialized) {
  if (initialized) throw UsageError(fmt::format("worker {}: initialize was called twice", index.value));
}

}  // namespace fluentps
