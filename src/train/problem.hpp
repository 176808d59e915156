/// What a worker computes: a model on a data set, or a stand-in without libtorch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fluentps/clock.hpp"
#include "fluentps/types.hpp"

namespace fluentps::train {

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  ///< NaN where the problem has none
};

/// One worker's share of the work. Weights and gradients are flat float32 in the order of tensors().
class Problem {
 public:
  virtual ~Problem() = default;
  virtual std::vector<TensorSpec> tensors() const = 0;
  /// The same on every rank for the same seed. `weights`: n float32.
  virtual void initial_weights(std::span<float> weights) = 0;
  /// Mean loss of this worker's part of global batch `i`, and its gradient. Part and gradient depend on nothing but the
  /// options, the weights and `i`. Pass the same buffer each time: `synthetic` fills it once only.
  virtual double gradient(std::span<const float> weights, Iteration i, std::span<float> gradient) = 0;
  /// Moves the computation to the GPU that is this thread's current one, where the problem and its library can: from
  /// then on weights and gradient of `gradient` are of that GPU's memory, complete at the call and at the return. Else
  /// false.
  virtual bool move_to_gpu() { return false; }
  /// On the whole test set; nullopt where there is none. `weights`: the host's memory.
  virtual std::optional<Evaluation> evaluate(std::span<const float> weights) = 0;
  /// Iterations of one pass over the training data; 0 where there is no data set.
  virtual Iteration iterations_per_epoch() const = 0;
  virtual std::string description() const = 0;
  /// False where the gradient stands for nothing: it is then pushed as it is, without an optimizer's pass over it.
  virtual bool moves_weights() const { return true; }
  /// What this worker holds besides the weights and a checkpoint must keep (running statistics of batch normalization):
  /// name and float32 view, of a GPU a copy, valid until the next call.
  virtual std::vector<std::pair<std::string, std::span<float>>> local_state() { return {}; }
  /// The arrays of the last local_state have been changed: takes them over.
  virtual void adopt_local_state() {}
};

struct ProblemOptions {
  /// softmax | mlp | lenet | cifar-quick | resnet20|32|44|56|110 | vgg16 | torchscript:FILE | quadratic:... |
  /// synthetic:...
  std::string model = "lenet";
  std::string dataset = "fashion-mnist";  ///< fashion-mnist | mnist | cifar10 | cifar100 | synthetic:...
  std::string data;                       ///< directory; empty: where the Debian package puts it
  std::string augment = "auto";           ///< auto (flip for cifar) | none | flip | crop | flip+crop
  std::uint32_t batch_size = 64;          ///< per worker
  std::uint64_t seed = 1;
  std::uint32_t workers = 1;  ///< N
  WorkerIndex worker;
  std::uint32_t evaluation_limit = 0;  ///< test images used, 0: all
};

/// Throws UsageError: unknown model or data set (names the valid ones), missing data (names the package), batch larger
/// than the data set. Loading takes seconds for big data sets; problems of one process share the data. `clock` is what
/// `synthetic` and `quadratic` sleep with; it outlives the problem.
std::unique_ptr<Problem> make_problem(const ProblemOptions& options, Clock& clock);

}  // namespace fluentps::train
