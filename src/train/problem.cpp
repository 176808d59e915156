/// Chooses a problem by the name of its model.
#include "train/problem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fluentps/error.hpp"
#include "text/words.hpp"
#include "train/makers.hpp"

namespace fluentps::train {

std::unique_ptr<Problem> make_problem(const ProblemOptions& options, Clock& clock) {
  if (options.batch_size == 0) throw UsageError("--batch-size is 0: give each worker at least one example");
  if (options.worker.value >= options.workers) {
    throw UsageError(fmt::format("worker {} of {}: the index must be below the number of workers", options.worker.value,
                                 options.workers));
  }
  const std::string name = options.model.substr(0, options.model.find(':'));
  if (name == "quadratic") return make_quadratic(options, clock);
  if (name == "synthetic") return make_synthetic(options, clock);
  if (name == "torchscript") return make_network_problem(options);
  auto valid = network_names();
  if (std::find(valid.begin(), valid.end(), options.model) != valid.end()) return make_network_problem(options);
  valid.insert(valid.end(), {"torchscript:FILE", "quadratic", "synthetic"});
  throw UsageError(fmt::format("--model: unknown model '{}', did you mean '{}'? Valid: {}", options.model,
                               nearest_name(options.model, valid), join_names(valid)));
}

}  // namespace fluentps::train
