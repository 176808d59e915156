/// A run as Chrome trace events (JSON), for https://ui.perfetto.dev and chrome://tracing.
#pragma once

#include <string>

#include "trace/reader.hpp"

namespace fluentps::trace {

/// Writes `path`, whole or not at all. One process per rank. A worker has a track for its iterations' parts, in the
/// order compute, push, wait, pull (wait and pull alternate in truth; their sums are shown), and one per server for its
/// pulls. A server has a track per worker for pushes and delayed pulls, and V as a counter. Times are in us since the
/// run's origin, each rank's clock offset taken out. Throws RunError naming the path.
void export_chrome(const RunData& run, const std::string& path);

}  // namespace fluentps::trace
