/// The numbers of a run that a person asks for first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trace/reader.hpp"

namespace fluentps::trace {

/// docs/trace-format.md, "Derived numbers", defines each.
struct Summary {
  std::uint32_t workers = 0, servers = 0;
  std::uint64_t iterations = 0;  ///< of all workers together
  double seconds = 0;            ///< first begin to last end of an iteration, over all workers
  double iterations_per_s = 0;   ///< of a worker: iterations / workers / seconds
  double compute_share = 0, push_share = 0, wait_share = 0, pull_share = 0, other_share = 0;  ///< sum to 1
  std::uint64_t bytes = 0;                                                  ///< pushed and pulled by all workers
  std::uint64_t pushes = 0, pulls = 0, delayed = 0, dropped = 0, late = 0;  ///< at all servers
  double staleness_mean = 0;                                                ///< of all pushes at all servers
  std::uint32_t staleness_max = 0;
  std::optional<EvaluationRow> last_evaluation, best_evaluation;  ///< by iteration; by accuracy
  std::optional<float> last_loss;                                 ///< of worker 0's last iteration
  bool done = false;                                              ///< every rank closed its trace
};

Summary summarize(const RunData& run);

/// Run, roles and summary as tables.
std::string to_text(const RunData& run, const Summary& summary);

/// One line, for following a live run.
std::string to_line(const Summary& summary);

}  // namespace fluentps::trace
