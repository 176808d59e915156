/// The training loop of one worker: compute, straggle, optimize, push and pull, evaluate.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fluentps/clock.hpp"
#include "fluentps/state.hpp"
#include "fluentps/types.hpp"
#include "fluentps/worker.hpp"
#include "shard/device.hpp"
#include "shard/schedule.hpp"
#include "shard/shard_memory.hpp"
#include "shard/state_copies.hpp"
#include "shard/update_rule.hpp"
#include "trace/writer.hpp"
#include "train/compute_model.hpp"
#include "train/problem.hpp"
#include "train/straggler.hpp"

namespace fluentps::train {

struct TrainerOptions {
  Iteration iterations = 0;  ///< of this worker
  Iteration eval_every = 0;  ///< worker 0 evaluates after so many iterations; 0: only at the end
  UpdateRuleOptions rule;
  bool optimizer_at_server = false;   ///< push the gradient and its learning rate; `rule` is the servers' affair
  double clip_norm = 0;               ///< a longer gradient is scaled down to this norm; 0: none is
  std::uint32_t grad_accumulate = 1;  ///< gradients of so many batches are averaged in one iteration
  ScheduleOptions schedule;
  std::string compute_model;    ///< spec, empty: computing takes the time it takes
  std::string straggler;        ///< spec, empty: none
  bool skip_nonfinite = false;  ///< push zeros instead of a gradient or loss that is not finite; else end the run
  std::uint64_t seed = 1;
  WorkerIndex worker;
  std::uint32_t workers = 1;  ///< N
  Device* device = nullptr;   ///< this rank's GPU, which outlives the trainer; used where the problem can move to it
};

/// How the loop reaches its checkpoints. Unset functions: it has none.
struct TrainerCheckpoints {
  Iteration every = 0;                        ///< save after so many iterations; 0: only when stopped
  std::function<void(const State&)> save;     ///< all workers call it after the same iteration
  std::function<void(const State&)> restore;  ///< of a resumed run: called once, before the first iteration
  /// Asked after every iteration: this rank has been told to stop, so save together with the others, and end.
  std::function<bool()> stop_wanted;
};

/// What an observer hears of every iteration.
struct IterationReport {
  Iteration iteration = 0;
  double loss = 0;
  double lr = 0;
  std::int64_t now_ns = 0;
  std::int64_t compute_ns = 0;  ///< stragglers included
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
  Iteration skipped = 0;  ///< of gradients that were not finite
  bool stopped = false;   ///< by a signal, after a checkpoint
};

class Trainer {
 public:
  /// References outlive the trainer; `trace` and `observer` may be null. Throws UsageError on options that do not fit.
  Trainer(const TrainerOptions& options, Problem& problem, Clock& clock, trace::WorkerTrace* trace, Observer* observer);

  /// Runs all iterations. Throws RunError when loss or gradient is not finite, naming worker and iteration.
  void run(Worker& worker);

  /// Evaluates `weights` and records it as of `iteration`; nothing where the problem has no test set.
  std::optional<Evaluation> evaluate(Iteration iteration, std::span<const float> weights);

  void set_checkpoints(const TrainerCheckpoints& checkpoints) { checkpoints_ = checkpoints; }
  /// What a checkpoint keeps of this worker: the optimizer's state under its name ("momentum/velocity"), the problem's
  /// under local/. Views into both.
  State state();

  const TrainerTotals& totals() const { return totals_; }

 private:
  double compute(Worker& worker, Iteration i);
  void pass_compute_time(Iteration i, std::int64_t begin_ns);
  double gradient(Iteration i);
  void clip();
  bool checkpoint(Worker& worker, Iteration next);
  bool usable(const Worker& worker, Iteration i, double loss);
  void record(const IterationReport& report, std::int64_t begin_ns);

  TrainerOptions options_;
  Problem& problem_;
  Clock& clock_;
  trace::WorkerTrace* trace_;
  Observer* observer_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<ShardMemory> memory_;  ///< of weights, updates and the rule's state
  std::unique_ptr<UpdateRule> rule_;
  ComputeModel compute_model_;
  Straggler straggler_;
  std::span<float> weights_;
  std::span<float> update_;          ///< first the gradient, then what is pushed
  std::span<float> batch_gradient_;  ///< of one of several batches
  StateCopies copies_;
  TrainerCheckpoints checkpoints_;
  TrainerTotals totals_;
};

}  // namespace fluentps::train
