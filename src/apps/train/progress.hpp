/// What a person sees while a run goes on: a bar on a terminal, a line every ten seconds in a log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fluentps/clock.hpp"
#include "train/trainer.hpp"

namespace fluentps::app {

/// The terminal that mpirun writes to, if it is one: ranks themselves always see a pseudo-terminal of mpirun's.
struct Terminal {
  bool present = false;
  int columns = 80;
};
Terminal find_terminal();

class Progress : public train::Observer {
 public:
  Progress(Iteration iterations, const Terminal& terminal, Clock& clock);

  void on_iteration(const train::IterationReport& report) override;
  void on_evaluation(Iteration iteration, const train::Evaluation& evaluation) override;
  /// A line of its own.
  void note(const std::string& text);
  /// Ends the bar's line.
  void finish();

 private:
  std::string numbers(const train::IterationReport& report, double per_second) const;
  void draw_bar(const train::IterationReport& report, double per_second);

  Iteration iterations_;
  Terminal terminal_;
  Clock& clock_;
  std::int64_t period_ns_;
  std::int64_t start_ns_;
  std::int64_t last_ns_;
  Iteration last_iteration_ = -1;  ///< before the first report; a resumed run does not begin at 0
  double smoothed_loss_ = 0;
  std::optional<train::Evaluation> evaluation_;
  bool bar_open_ = false;
};

}  // namespace fluentps::app
