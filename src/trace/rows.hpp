/// The rows of the trace tables (docs/trace-format.md). Times are ns since the run's common origin.
#pragma once

#include <cstdint>

namespace fluentps::trace {

/// worker: /iterations. The four durations are parts of the iteration: compute (stragglers included), push (puts,
/// flushes, waiting for credits), wait (from the request to the last grant), pull (gets).
struct IterationRow {
  std::uint32_t iteration;
  std::uint64_t begin_ns, compute_ns, push_ns, wait_ns, pull_ns;
  float loss, lr;
  std::uint64_t bytes;
};
/// worker: /pulls, one row per iteration and server.
struct WorkerPullRow {
  std::uint32_t iteration;
  std::uint16_t server;
  std::uint64_t request_ns, grant_ns, done_ns;
  std::uint32_t v;
};
/// worker: /evaluations
struct EvaluationRow {
  std::uint32_t iteration;
  std::uint64_t time_ns;
  float test_loss, test_accuracy;
};
/// server: /pushes. staleness = i - V at the pull the update was computed from (0 in bsp, at most s in ssp).
/// late = 1: i < V on arrival. applied_ns is 0 where it was dropped.
struct PushRow {
  std::uint16_t worker;
  std::uint32_t iteration;
  std::uint64_t arrive_ns, applied_ns, bytes;
  std::uint32_t staleness;
  std::uint8_t late;
};
/// server: /pulls
struct ServerPullRow {
  std::uint16_t worker;
  std::uint32_t iteration;
  std::uint64_t request_ns, answer_ns;
  std::uint32_t v_request, v_answer;
  std::uint8_t delayed;
};
/// server: /advances: V reached v at time_ns.
struct AdvanceRow {
  std::uint32_t v;
  std::uint64_t time_ns;
};

}  // namespace fluentps::trace
