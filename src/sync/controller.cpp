/// The controller of one server.
#include "sync/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fluentps/error.hpp"
#include "sync/clocks.hpp"
#include "sync/coin.hpp"
#include "sync/delayed_pulls.hpp"
#include "text/words.hpp"

namespace fluentps {

Release parse_release(std::string_view text) {
  if (text == "soft") return Release::kSoft;
  if (text == "lazy") return Release::kLazy;
  throw UsageError(fmt::format("--release: there is no release '{}', the nearest is '{}' (valid: soft, lazy)", text,
                               nearest_name(text, {"soft", "lazy"})));
}

std::string_view to_string(Release release) { return release == Release::kSoft ? "soft" : "lazy"; }

struct Controller::Impl : DelayedPulls::Condition {
  Impl(const ControllerOptions& controller_options, std::vector<SyncPlan::Stretch> plan, ServerIndex server)
      : options(controller_options),
        stretches(std::move(plan)),
        clocks(options.workers, options.coin_per_server ? options.seed ^ mix64(server.value + 1ULL) : options.seed,
               options.first_iteration),
        delayed(options.workers, options.first_iteration) {}

  SyncModel& model_at(Iteration i) const {
    auto stretch = stretches.size() - 1;
    while (stretch > 0 && stretches[stretch].from > i) --stretch;
    return *stretches[stretch].model;
  }

  void require_known(WorkerIndex worker, const char* event) const {
    if (worker.value >= options.workers)
      throw ProtocolError(
          fmt::format("{} of worker {}: there are workers 0 to {}", event, worker.value, options.workers - 1));
  }
  void require_active(WorkerIndex worker, const char* event) const {
    require_known(worker, event);
    if (!clocks.active(worker)) throw ProtocolError(fmt::format("{} of worker {}: it has left", event, worker.value));
  }

  bool answers_now(const SyncModel& model, WorkerIndex worker, Iteration i) const {
    if (i < clocks.v()) return true;
    if (options.only_fastest && i + 1 < clocks.fastest()) return true;
    return model.may_pull(clocks, worker, i) && !(options.join && delayed.any_at(i));
  }

  void buffer(const SyncModel& model, const Grant& pull) {
    ++delayed_pulls;
    if (options.release == Release::kLazy) return delayed.file(pull, pull.iteration + 1);
    const auto release = model.release_at(clocks, pull.worker, pull.iteration);
    if (release) return delayed.file(pull, std::clamp(*release, clocks.v() + 1, pull.iteration + 1));
    if (model.may_release(clocks, pull.worker, pull.iteration)) return delayed.file_joined(pull);
    delayed.file_unscheduled(pull, model.waits_for(clocks, pull.worker, pull.iteration));
  }

  bool may_go(WorkerIndex worker, Iteration i) const override { return model_at(i).may_release(clocks, worker, i); }
  std::optional<WorkerIndex> waits_for(WorkerIndex worker, Iteration i) const override {
    return model_at(i).waits_for(clocks, worker, i);
  }

  /// After `worker` has pushed or left, or after time has passed: moves V as far as it goes, releases what that allows.
  void settle(std::optional<WorkerIndex> worker) {
    const auto answered = grants.size();
    while (clocks.begun() && model_at(clocks.v()).may_advance(clocks)) {
      clocks.advance();
      delayed.advance(clocks.v(), grants);
    }
    if (delayed.has_unscheduled()) delayed.recheck(worker, *this, grants);
    for (auto each = answered; each < grants.size(); ++each)
      model_at(grants[each].iteration).on_answer(clocks, grants[each].worker, grants[each].iteration);
  }

  ControllerOptions options;
  std::vector<SyncPlan::Stretch> stretches;
  Clocks clocks;
  DelayedPulls delayed;
  std::vector<Grant> grants;
  std::uint64_t delayed_pulls = 0;
};

Controller::Controller(const ControllerOptions& options, const SyncPlan& plan, ServerIndex server)
    : impl_(std::make_unique<Impl>(options, plan.stretches(server), server)) {}

Controller::~Controller() = default;

bool Controller::push(WorkerIndex worker, Iteration i, std::int64_t now_ns) {
  auto& clocks = impl_->clocks;
  impl_->require_active(worker, "push");
  if (i != clocks.progress(worker))
    throw ProtocolError(fmt::format("push of worker {}: it is of iteration {}, expected was {}", worker.value, i,
                                    clocks.progress(worker)));
  if (impl_->delayed.waits(worker))
    throw ProtocolError(fmt::format("push of worker {} of iteration {}: its pull at {} has not been answered yet",
                                    worker.value, i, i - 1));
  clocks.set_now(now_ns);
  const bool in_time = clocks.push(worker);
  impl_->model_at(i).on_push(clocks, worker, i);
  impl_->settle(worker);
  return in_time;
}

bool Controller::pull(WorkerIndex worker, Iteration i, std::int64_t now_ns) {
  auto& clocks = impl_->clocks;
  impl_->require_known(worker, "pull");
  if (i != clocks.progress(worker) - 1)
    throw ProtocolError(fmt::format("pull of worker {}: it is at iteration {}, its last push was of {}", worker.value,
                                    i, clocks.progress(worker) - 1));
  if (impl_->delayed.waits(worker))
    throw ProtocolError(
        fmt::format("pull of worker {} at iteration {}: its pull before has not been answered yet", worker.value, i));
  clocks.set_now(now_ns);
  auto& model = impl_->model_at(i);
  Grant grant{.worker = worker, .iteration = i, .v_request = clocks.v(), .delayed = false};
  if (impl_->answers_now(model, worker, i)) {
    impl_->grants.push_back(grant);
    model.on_answer(clocks, worker, i);
    return true;
  }
  grant.delayed = true;
  impl_->buffer(model, grant);
  return false;
}

void Controller::leave(WorkerIndex worker, std::int64_t now_ns) {
  impl_->require_active(worker, "leave");
  impl_->clocks.set_now(now_ns);
  impl_->clocks.leave(worker);
  impl_->settle(worker);
}

void Controller::tick(std::int64_t now_ns) {
  impl_->clocks.set_now(now_ns);
  impl_->settle(std::nullopt);
}

std::optional<std::int64_t> Controller::deadline_ns() const {
  const auto& clocks = impl_->clocks;
  return clocks.begun() ? impl_->model_at(clocks.v()).deadline_ns(clocks) : std::nullopt;
}

std::vector<Grant> Controller::take_grants() { return std::exchange(impl_->grants, {}); }

const SyncState& Controller::state() const { return impl_->clocks; }

const SyncModel& Controller::model_at(Iteration i) const { return impl_->model_at(i); }

std::vector<Grant> Controller::waiting() const { return impl_->delayed.waiting(); }

std::uint64_t Controller::delayed_pulls() const { return impl_->delayed_pulls; }

}  // namespace fluentps
