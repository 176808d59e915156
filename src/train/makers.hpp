/// Makers of the single problems, for make_problem only. Nothing of libtorch shows here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fluentps/types.hpp"
#include "train/problem.hpp"

namespace fluentps::train {

std::unique_ptr<Problem> make_quadratic(const ProblemOptions& options, Clock& clock);
std::unique_ptr<Problem> make_synthetic(const ProblemOptions& options, Clock& clock);
std::unique_ptr<Problem> make_network_problem(const ProblemOptions& options);

/// Names of the networks that need no file.
const std::vector<std::string>& network_names();

/// Parameters of a network in its usual form: 3x32x32 images for the CIFAR networks, 1x28x28 for the others, 10
/// classes. Throws UsageError on an unknown name.
std::vector<TensorSpec> network_tensors(const std::string& name);

}  // namespace fluentps::train
