#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fluentps/error.hpp"
#include "shard/device_memory.hpp"

namespace fluentps::train {
namespace {

std::int64_t total_size(const std::vector<TensorSpec>& tensors) {
  std::int64_t n = 0;
  for (const auto& each : tensors) n += each.size();
  return n;
}

/// Every tensor is a layer of LARS.
std::vector<LayerRange> layers_of(const std::vector<TensorSpec>& tensors) {
  std::vector<LayerRange> layers;
  std::int64_t offset = 0;
  for (const auto& each : tensors) {
    layers.push_back({offset, each.size()});
    offset += each.size();
  }
  return layers;
}

std::unique_ptr<ShardMemory> make_memory(Device* device, Problem& problem) {
  if (device != nullptr && problem.move_to_gpu()) return std::make_unique<DeviceMemory>(*device);
  return std::make_unique<HostMemory>();
}

}  // namespace

Trainer::Trainer(const TrainerOptions& options, Problem& problem, Clock& clock, trace::WorkerTrace* trace,
                 Observer* observer)
    : options_(options),
      problem_(problem),
      clock_(clock),
      trace_(trace),
      observer_(observer),
      schedule_(make_schedule(options.schedule)),
      memory_(make_memory(options.device, problem)),
      compute_model_(options.compute_model, options.seed, options.worker),
      straggler_(options.straggler, options.seed, options.workers, options.worker) {
  const auto tensors = problem.tensors();
  const auto n = total_size(tensors);
  if (options.clip_norm < 0 || !std::isfinite(options.clip_norm))
    throw UsageError(fmt::format("--clip-norm is {}; it must be 0 (none) or more", options.clip_norm));
  if (options.grad_accumulate == 0) throw UsageError("--grad-accumulate is 0; it must be 1 or more");
  // Made in any case: a mistake in its options is the user's wherever it runs.
  rule_ = make_update_rule(options.rule, options.optimizer_at_server ? 0 : n,
                           options.optimizer_at_server ? std::vector<LayerRange>{} : layers_of(tensors), *memory_);
  weights_ = memory_->allocate(static_cast<std::size_t>(n));
  update_ = memory_->allocate(static_cast<std::size_t>(n));
  if (options.grad_accumulate > 1) batch_gradient_ = memory_->allocate(static_cast<std::size_t>(n));
}

void Trainer::run(Worker& worker) {
  std::vector<float> on_host(weights_.size());
  problem_.initial_weights(on_host);
  memory_->write(weights_, on_host);
  worker.initialize(weights_);
  if (checkpoints_.restore) {
    checkpoints_.restore(state());
    copies_.adopt(*memory_);
    problem_.adopt_local_state();
  }
  const auto start_ns = clock_.now_ns();
  for (auto i = worker.iteration(); i < options_.iterations; ++i) {
    const auto begin_ns = clock_.now_ns();
    IterationReport report{.iteration = i, .lr = schedule_->at(i)};
    report.loss = compute(worker, i);
    report.compute_ns = clock_.now_ns() - begin_ns;
    worker.set_lr(report.lr);
    worker.push_pull(update_, weights_);
    report.transfer = worker.last_transfer();
    record(report, begin_ns);
    if (worker.index().value == 0 && options_.eval_every > 0 && (i + 1) % options_.eval_every == 0 &&
        i + 1 < options_.iterations) {
      memory_->read(weights_, on_host);
      evaluate(i + 1, on_host);
    }
    if (checkpoint(worker, i + 1)) break;
  }
  totals_.total_ns = clock_.now_ns() - start_ns;
}

/// Returns whether the loop ends here.
bool Trainer::checkpoint(Worker& worker, Iteration next) {
  const bool stop_wanted = checkpoints_.stop_wanted && checkpoints_.stop_wanted();
  if (!checkpoints_.save) return false;
  if (stop_wanted) worker.request_stop();
  totals_.stopped = worker.stop_at() == next && next < options_.iterations;
  if (totals_.stopped || (checkpoints_.every > 0 && next % checkpoints_.every == 0)) checkpoints_.save(state());
  return totals_.stopped;
}

State Trainer::state() {
  State state;
  if (!options_.optimizer_at_server) {
    for (auto& [name, values] : rule_->state()) state.arrays.emplace_back(options_.rule.name + "/" + name, values);
    for (auto& [name, value] : rule_->scalars()) state.numbers.emplace_back(options_.rule.name + "/" + name, value);
  }
  state = copies_.on_host(*memory_, std::move(state));
  for (auto& [name, values] : problem_.local_state()) state.arrays.emplace_back("local/" + name, values);
  return state;
}

/// Iteration i takes the batches i*K to i*K+K-1 and their mean.
double Trainer::gradient(Iteration i) {
  const Iteration count = options_.grad_accumulate;
  if (count == 1) return problem_.gradient(weights_, i, update_);
  double loss = 0;
  for (Iteration k = 0; k < count; ++k) {
    loss += problem_.gradient(weights_, i * count + k, batch_gradient_);
    if (k == 0)
      passes::store(*memory_, update_, batch_gradient_);
    else
      passes::add(*memory_, update_, batch_gradient_);
    memory_->finish();
  }
  passes::scale(*memory_, update_, 1.0F / static_cast<float>(count));
  return loss / static_cast<double>(count);
}

/// Pascanu, Mikolov and Bengio 2013.
void Trainer::clip() {
  if (options_.clip_norm == 0) return;
  const std::span<const float> whole = update_;
  const double norm = std::sqrt(memory_->squared_norms(std::span(&whole, 1)).front());
  if (norm <= options_.clip_norm) return;
  passes::scale(*memory_, update_, static_cast<float>(options_.clip_norm / norm));
}

double Trainer::compute(Worker& worker, Iteration i) {
  const auto begin_ns = clock_.now_ns();
  const double loss = gradient(i);
  if (!usable(worker, i, loss)) {
    passes::fill(*memory_, update_, 0);
  } else if (problem_.moves_weights()) {
    clip();
    if (!options_.optimizer_at_server) rule_->step(weights_, update_, schedule_->at(i), update_);
  }
  memory_->finish();
  pass_compute_time(i, begin_ns);
  if (straggler_.active()) clock_.sleep_ns(straggler_.sleep_ns(i, clock_.now_ns() - begin_ns));
  return loss;
}

/// Sleeps for what the arithmetic, which takes no time on a simulated cluster, has left of the model's time.
void Trainer::pass_compute_time(Iteration i, std::int64_t begin_ns) {
  if (!compute_model_.active()) return;
  const auto wanted_ns = std::llround(static_cast<double>(compute_model_.compute_ns(i)) / clock_.speed());
  clock_.sleep_ns(wanted_ns - (clock_.now_ns() - begin_ns));
}

/// A gradient that is not finite would spoil the weights of all. Skipped, the worker pushes zeros: the clocks move on.
bool Trainer::usable(const Worker& worker, Iteration i, double loss) {
  if (!problem_.moves_weights()) return true;
  const bool finite_loss = std::isfinite(loss);
  if (finite_loss && memory_->all_finite(update_)) return true;
  if (!options_.skip_nonfinite)
    throw RunError(
        fmt::format("the {} of worker {} at iteration {} is not finite (loss {}); lower --lr, warm up, or use "
                    "--nonfinite skip",
                    finite_loss ? "gradient" : "loss", worker.index().value, i, loss));
  ++totals_.skipped;
  return false;
}

void Trainer::record(const IterationReport& report, std::int64_t begin_ns) {
  const auto& transfer = report.transfer;
  ++totals_.iterations;
  totals_.compute_ns += report.compute_ns;
  totals_.push_ns += transfer.push_ns;
  totals_.wait_ns += transfer.wait_ns;
  totals_.pull_ns += transfer.pull_ns;
  totals_.bytes += transfer.bytes;
  totals_.last_loss = report.loss;
  const auto now_ns = clock_.now_ns();
  if (trace_ != nullptr) {
    trace_->add(trace::IterationRow{.iteration = static_cast<std::uint32_t>(report.iteration),
                                    .begin_ns = static_cast<std::uint64_t>(begin_ns),
                                    .compute_ns = static_cast<std::uint64_t>(report.compute_ns),
                                    .push_ns = static_cast<std::uint64_t>(transfer.push_ns),
                                    .wait_ns = static_cast<std::uint64_t>(transfer.wait_ns),
                                    .pull_ns = static_cast<std::uint64_t>(transfer.pull_ns),
                                    .loss = static_cast<float>(report.loss),
                                    .lr = static_cast<float>(report.lr),
                                    .bytes = transfer.bytes});
    trace_->maybe_flush(now_ns);
  }
  if (observer_ == nullptr) return;
  auto told = report;
  told.now_ns = now_ns;
  observer_->on_iteration(told);
}

std::optional<Evaluation> Trainer::evaluate(Iteration iteration, std::span<const float> weights) {
  const auto result = problem_.evaluate(weights);
  if (!result) return result;
  if (trace_ != nullptr)
    trace_->add(trace::EvaluationRow{.iteration = static_cast<std::uint32_t>(iteration),
                                     .time_ns = static_cast<std::uint64_t>(clock_.now_ns()),
                                     .test_loss = static_cast<float>(result->loss),
                                     .test_accuracy = static_cast<float>(result->accuracy)});
  if (observer_ != nullptr) observer_->on_evaluation(iteration, *result);
  return result;
}

}  // namespace fluentps::train
