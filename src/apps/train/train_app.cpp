#include "apps/train/train_app.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <memory>

#include "apps/train/progress.hpp"
#include "apps/train/report.hpp"
#include "fluentps/error.hpp"
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
    options.trace_attributes = {{"config", config.effective}, {"argv", join(argc, argv)}, {"model", config.problem.model}};
    options.configuration = config.effective;
    options.prepare = [this](WorkerIndex index, std::uint32_t workers) { return prepare(index, workers); };
    session_ = std::make_unique<Session>(MPI_COMM_WORLD, options);
  }

  int operator()() {
    speaks_ = !session_->is_server() && session_->index() == 0;
    if (speaks_) print_head();
    session_->run([this](Worker& worker) { train(worker); });
    const auto weights = session_->gather_weights();
    std::optional<train::Evaluation> final_evaluation;
    if (speaks_) {
      final_evaluation = trainer_->evaluate(config_.trainer.iterations, weights);
      if (!config_.save_weights.empty()) trace::save_weights(config_.save_weights, tensors_, weights);
    }
    const auto summary = gather_summary(*session_, trainer_ ? trainer_->totals() : train::TrainerTotals{}, root());
    session_->close_trace();
    if (speaks_) {
      progress_->finish();
      fmt::print("{}", to_table(summary, final_evaluation, session_->run_dir()));
      std::fflush(stdout);
    }
    return kExitDone;
  }

 private:
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
      if (config_.global_batch % workers != 0)
        throw UsageError(fmt::format("--global-batch {} is not a multiple of the {} workers", config_.global_batch, workers));
      problem.batch_size = config_.global_batch / workers;
    }
    problem_ = train::make_problem(problem, clock_);
    set_iterations(index, workers);
    tensors_ = problem_->tensors();
    // Made here once so that a mistake in them ends all ranks alike, before anything is written.
    trainer_ = std::make_unique<train::Trainer>(config_.trainer, *problem_, clock_, nullptr, nullptr);
    return tensors_;
  }

  void set_iterations(WorkerIndex index, std::uint32_t workers) {
    auto& trainer = config_.trainer;
    const auto& list = config_.iterations;
    trainer.iterations = list[std::min<std::size_t>(index.value, list.size() - 1)];
    if (config_.epochs > 0) {
      const auto per_epoch = problem_->iterations_per_epoch();
      if (per_epoch == 0)
        throw UsageError(fmt::format("--epochs needs a data set, and --model {} has none; use --iterations", config_.problem.model));
      trainer.iterations = std::max<Iteration>(1, std::llround(config_.epochs * static_cast<double>(per_epoch)));
    }
    trainer.schedule.iterations = trainer.iterations;
    trainer.workers = trainer.schedule.workers = workers;
    trainer.worker = index;
  }

  void train(Worker& worker) {
    if (speaks_) progress_ = std::make_unique<Progress>(config_.trainer.iterations, find_terminal(), session_->clock());
    clock_.follow(session_->clock());
    trainer_ = std::make_unique<train::Trainer>(config_.trainer, *problem_, clock_, session_->worker_trace(), progress_.get());
    trainer_->run(worker);
  }

  void print_head() const {
    fmt::print("fluentps: {} servers, {} workers, sync {}, release {}\n{}\n{}transport {}\n", session_->servers(),
               session_->workers(), config_.session.sync, config_.session.release, problem_->description(),
               session_->shard_table(), session_->transport());
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
};

}  // namespace

int run_training(const Config& config, int argc, const char* const* argv) { return Run(config, argc, argv)(); }

}  // namespace fluentps::app
