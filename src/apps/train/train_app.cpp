#include "apps/train/train_app.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>

#include "apps/train/progress.hpp"
#include "apps/train/report.hpp"
#include "apps/train/signals.hpp"
#include "fluentps/error.hpp"
#include "net/ending.hpp"
#include "ps/checkpoint.hpp"
#include "trace/weights_file.hpp"

namespace fluentps::app {
namespace {

std::string join(int argc, const char* const* argv) {
  std::string text;
  for (int k = 0; k < argc; ++k) text += fmt::format("{}{}", k == 0 ? "" : " ", argv[k]);
  return text;
}

class Run {
 public:
  Run(const Config& config, int argc, const char* const* argv) : config_(config) {
    auto options = config.session;
    options.trace_attributes = {
        {"config", config.effective}, {"argv", join(argc, argv)}, {"model", config.problem.model}};
    options.configuration = config.effective;
    // Without a folder, or where some workers end before others, there is no checkpoint to end with.
    can_stop_ = config.iterations.size() == 1 && !(options.out.empty() && options.checkpoint_dir.empty());
    if (can_stop_) options.stop_wanted = stop_wanted;
    options.prepare = [this](WorkerIndex index, std::uint32_t workers) { return prepare(index, workers); };
    options.iterations = [this] { return config_.trainer.iterations; };
    if (config.preflight_only)
      fmt::print("{}", Session::preflight(MPI_COMM_WORLD, options));
    else
      session_ = std::make_unique<Session>(MPI_COMM_WORLD, options);
  }

  int operator()() {
    if (!session_) return kExitDone;
    speaks_ = !session_->is_server() && session_->index() == 0;
    if (speaks_) print_head();
    if (speaks_ && !session_->run_dir().empty())
      std::ofstream(session_->run_dir() + "/config.cfg") << config_.effective;
    session_->run([this](Worker& worker) { train(worker); });
    const auto weights = session_->gather_weights();
    std::optional<train::Evaluation> final_evaluation;
    const bool stopped = any(trainer_ && trainer_->totals().stopped);
    if (speaks_) {
      final_evaluation = trainer_->evaluate(session_->first_iteration() + trainer_->totals().iterations, weights);
      if (!config_.save_weights.empty()) trace::save_weights(config_.save_weights, tensors_, weights);
    }
    const auto summary = gather_summary(*session_, trainer_ ? trainer_->totals() : train::TrainerTotals{}, root());
    session_->close_trace();
    if (speaks_) {
      progress_->finish();
      fmt::print("{}", to_table(summary, final_evaluation, session_->run_dir()));
      std::fflush(stdout);
    }
    return stopped ? kExitResumable : kExitDone;
  }

 private:
  bool any(bool own) {
    int value = own ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, session_->job());
    return value != 0;
  }

  /// Job rank of worker 0, agreed on by all.
  int root() {
    int rank = 0;
    MPI_Comm_rank(session_->job(), &rank);
    int claim = speaks_ ? rank : 0;
    MPI_Allreduce(MPI_IN_PLACE, &claim, 1, MPI_INT, MPI_MAX, session_->job());
    return claim;
  }

  std::vector<TensorSpec> prepare(WorkerIndex index, std::uint32_t workers) {
    auto problem = config_.problem;
    problem.worker = index;
    problem.workers = workers;
    if (config_.global_batch > 0) {
      const auto batches = workers * std::max(1U, config_.trainer.grad_accumulate);
      if (config_.global_batch % batches != 0)
        throw UsageError(fmt::format("--global-batch {} is not a multiple of {} ({} workers x --grad-accumulate {})",
                                     config_.global_batch, batches, workers, config_.trainer.grad_accumulate));
      problem.batch_size = config_.global_batch / batches;
    }
    problem_ = train::make_problem(problem, clock_);
    set_iterations(index, workers);
    tensors_ = problem_->tensors();
    // Made here once so that a mistake in them ends all ranks alike, before anything is written.
    trainer_ = std::make_unique<train::Trainer>(config_.trainer, *problem_, clock_, nullptr, nullptr);
    if (!config_.session.resume.empty()) check_resume(workers);
    return tensors_;
  }

  void check_resume(std::uint32_t workers) {
    const auto manifest = find_checkpoint(config_.session.resume);
    if (manifest.iteration >= config_.trainer.iterations)
      throw UsageError(fmt::format("{} is of iteration {}, and the run ends at {}; give more --iterations to go on",
                                   manifest.folder, manifest.iteration, config_.trainer.iterations));
    if (config_.iterations.size() > 1) throw UsageError("--resume needs one number of --iterations for all workers");
    check_worker_state(manifest, trainer_->state(), workers);
  }

  void set_iterations(WorkerIndex index, std::uint32_t workers) {
    auto& trainer = config_.trainer;
    const auto& list = config_.iterations;
    trainer.iterations = list[std::min<std::size_t>(index.value, list.size() - 1)];
    if (config_.epochs > 0) {
      const auto per_epoch = problem_->iterations_per_epoch() / std::max(1U, config_.trainer.grad_accumulate);
      if (per_epoch == 0)
        throw UsageError(
            fmt::format("--epochs needs a data set, and --model {} has none; use --iterations", config_.problem.model));
      trainer.iterations = std::max<Iteration>(1, std::llround(config_.epochs * static_cast<double>(per_epoch)));
    }
    trainer.schedule.iterations = trainer.iterations;
    trainer.workers = trainer.schedule.workers = workers;
    trainer.worker = index;
  }

  void train(Worker& worker) {
    if (speaks_) progress_ = std::make_unique<Progress>(config_.trainer.iterations, find_terminal(), session_->clock());
    clock_.follow(session_->clock());
    config_.trainer.device = session_->device();
    trainer_ =
        std::make_unique<train::Trainer>(config_.trainer, *problem_, clock_, session_->worker_trace(), progress_.get());
    trainer_->set_checkpoints(checkpoints());
    trainer_->run(worker);
  }

  train::TrainerCheckpoints checkpoints() {
    train::TrainerCheckpoints result;
    result.every = config_.checkpoint_every;
    if (can_stop_)
      result.save = [this](const State& state) {
        const auto folder = session_->checkpoint(state);
        if (speaks_) progress_->note(fmt::format("checkpoint: {}", folder));
      };
    if (session_->first_iteration() > 0) result.restore = [this](const State& state) { session_->restore(state); };
    result.stop_wanted = [this] {
      end_if_told();
      const bool wanted = stop_wanted();
      if (wanted && speaks_ && !can_stop_ && !std::exchange(told_, true))
        progress_->note(
            "SIGUSR1 does not stop this run: a checkpoint needs --out or --checkpoint-dir and one number of "
            "--iterations");
      return wanted;
    };
    return result;
  }

  void print_head() const {
    if (session_->first_iteration() > 0)
      fmt::print("resumed at iteration {} from {}\n", session_->first_iteration(), config_.session.resume);
    const auto groups =
        config_.session.local_group == "none" ? "" : fmt::format(" in {} local groups", session_->groups());
    fmt::print("fluentps: {} servers, {} workers{}, sync {}, release {}\n{}\n{}transport {}\n", session_->servers(),
               session_->workers(), groups, config_.session.sync, config_.session.release, problem_->description(),
               session_->shard_table(), session_->transport());
    if (const auto gpu = session_->gpu_transfer(); !gpu.empty()) fmt::print("GPU transfer {}\n", gpu);
    std::fflush(stdout);
  }

  /// The problem is made before the session's clock exists; this one stands in for it.
  class LateClock : public Clock {
   public:
    void follow(Clock& clock) { clock_ = &clock; }
    std::int64_t now_ns() const override { return clock_ != nullptr ? clock_->now_ns() : 0; }
    void sleep_ns(std::int64_t duration_ns) override {
      if (clock_ != nullptr) clock_->sleep_ns(duration_ns);
    }
    double speed() const override { return clock_ != nullptr ? clock_->speed() : 1; }

   private:
    Clock* clock_ = nullptr;
  };

  Config config_;
  LateClock clock_;
  std::unique_ptr<train::Problem> problem_;
  std::vector<TensorSpec> tensors_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<train::Trainer> trainer_;
  bool speaks_ = false;
  bool can_stop_ = false;
  bool told_ = false;  ///< that there is no stopping
};

}  // namespace

int run_training(const Config& config, int argc, const char* const* argv) { return Run(config, argc, argv)(); }

}  // namespace fluentps::app
