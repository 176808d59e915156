/// The table at the end of a run.
#pragma once

#include <optional>
#include <string>

#include "fluentps/session.hpp"
#include "train/trainer.hpp"

namespace fluentps::app {

/// Collective over session.job(): every rank's sums, on rank `root` of it.
struct RunSummary {
  std::vector<train::TrainerTotals> workers;  ///< by index
  std::vector<SessionStatistics> servers;     ///< by index
};
RunSummary gather_summary(const Session& session, const train::TrainerTotals& own, int root);

std::string to_table(const RunSummary& summary, const std::optional<train::Evaluation>& final_evaluation,
                     const std::string& trace_path);

}  // namespace fluentps::app
