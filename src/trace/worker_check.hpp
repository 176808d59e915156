/// One worker's tables against themselves and against the servers'.
#pragma once

#include <vector>

#include "trace/server_check.hpp"

namespace fluentps::trace {

/// `servers`: by server index, null where its trace is not at hand.
void check_worker(const RankData& rank, const Contract& contract, const std::vector<const ServerCheck*>& servers,
                  Verification& verification);

}  // namespace fluentps::trace
