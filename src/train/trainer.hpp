/// The training loop of one worker: compute, straggle, optimize, push and pull, evaluate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fluentps/clock.hpp"
#include "fluentps/types.hpp"
#include "fluentps/worker.hpp"
#include "shard/schedule.hpp"
#include "shard/update_rule.hpp"
#include "trace/writer.hpp"
#include "train/compute_model.hpp"
#include "train/problem.hpp"
#include "train/straggler.hpp"

namespace fluentps::train {

struct TrainerOptions {
  Iteration iterations = 0;      ///< of this worker
  Iteration eval_every = 0;      ///< worker 0 evaluates after so many iterations; 0: only at the end
  UpdateRuleOptions rule;
  ScheduleOptions schedule;
  std::string compute_model;     ///< spec, empty: computing takes the time it takes
  std::string straggler;         ///< spec, empty: none
  bool skip_nonfinite = false;   ///< push zeros instead of a gradient or loss that is not finite; else end the run
  std::uint64_t seed = 1;
  WorkerIndex worker;
  std::uint32_t workers = 1;     ///< N
};

/// What an observer hears of every iteration.
struct IterationReport {
  Iteration iteration = 0;
  double loss = 0;
  double lr = 0;
  std::int64_t now_ns = 0;
  std::int64_t compute_ns = 0;   ///< stragglers included
  Transfer transfer = {};
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_iteration(const IterationReport& report) = 0;
  virtual void on_evaluation(Iteration iteration, const Evaluation& evaluation) = 0;
};

/// Sums over all iterations of one worker.
struct TrainerTotals {
  Iteration iterations = 0;
  std::int64_t compute_ns = 0, push_ns = 0, wait_ns = 0, pull_ns = 0, total_ns = 0;
  std::uint64_t bytes = 0;
  double last_loss = 0;
  Iteration skipped = 0;         ///< of gradients that were not finite
};

class Trainer {
 public:
  /// References outlive the trainer; `trace` and `observer` may be null. Throws UsageError on options that do not fit.
  Trainer(const TrainerOptions& options, Problem& problem, Clock& clock, trace::WorkerTrace* trace, Observer* observer);

  /// Runs all iterations. Throws RunError when loss or gradient is not finite, naming worker and iteration.
  void run(Worker& worker);

  /// Evaluates `weights` and records it as of `iteration`; nothing where the problem has no test set.
  std::optional<Evaluation> evaluate(Iteration iteration, std::span<const float> weights);

  const TrainerTotals& totals() const { return totals_; }

 private:
  double compute(Worker& worker, Iteration i);
  void pass_compute_time(Iteration i, std::int64_t begin_ns);
  bool usable(const Worker& worker, Iteration i, double loss);
  void record(const IterationReport& report, std::int64_t begin_ns);

  TrainerOptions options_;
  Problem& problem_;
  Clock& clock_;
  trace::WorkerTrace* trace_;
  Observer* observer_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<UpdateRule> rule_;
  ComputeModel compute_model_;
  Straggler straggler_;
  std::vector<float> weights_;
  std::vector<float> update_;  ///< first the gradient, then what is pushed
  TrainerTotals totals_;
};

}  // namespace fluentps::train
