/// What the model checker checks: a controller, or one that was broken on purpose.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sync/controller.hpp"

namespace fluentps::test {

class Subject {
 public:
  Subject(const ControllerOptions& options, const std::string& sync)
      : controller_(options, SyncPlan(sync, options.workers, 1), ServerIndex{0}) {}
  virtual ~Subject() = default;

  virtual bool push(WorkerIndex worker, Iteration i, std::int64_t now_ns) {
    return controller_.push(worker, i, now_ns);
  }
  virtual bool pull(WorkerIndex worker, Iteration i, std::int64_t now_ns) {
    return controller_.pull(worker, i, now_ns);
  }
  virtual void leave(WorkerIndex worker, std::int64_t now_ns) { controller_.leave(worker, now_ns); }
  virtual void tick(std::int64_t now_ns) { controller_.tick(now_ns); }
  virtual std::vector<Grant> take_grants() { return controller_.take_grants(); }
  virtual std::vector<Grant> waiting() const { return controller_.waiting(); }
  virtual std::uint32_t count(Iteration i) const { return controller_.state().count(i); }
  virtual std::uint64_t delayed_pulls() const { return controller_.delayed_pulls(); }
  const SyncState& state() const { return controller_.state(); }
  bool has_deadline() const { return controller_.deadline_ns().has_value(); }

 private:
  Controller controller_;
};

using MakeSubject = std::function<std::unique_ptr<Subject>(const ControllerOptions& options, const std::string& sync)>;

inline std::unique_ptr<Subject> make_controller(const ControllerOptions& options, const std::string& sync) {
  return std::make_unique<Subject>(options, sync);
}

}  // namespace fluentps::test
