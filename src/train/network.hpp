/// Networks as libtorch modules. Included only by the few files that use libtorch: its headers compile slowly.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/dataset.hpp"

namespace fluentps::train {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

/// A network in either form, C++ module or TorchScript. Tensors are shared with the caller, not copied.
class Network {
 public:
  virtual ~Network() = default;
  /// images: [batch, channels, height, width], already prepared; result: logits [batch, classes].
  virtual torch::Tensor forward(const torch::Tensor& images) = 0;
  /// Trainable, in a fixed order.
  virtual NamedTensors parameters() = 0;
  /// Not trainable: running statistics of batch normalization.
  virtual NamedTensors buffers() = 0;
  virtual void set_training(bool on) = 0;
  /// Parameters and buffers move to the current GPU; the tensors handed out before stay theirs.
  virtual void to_gpu() = 0;
  /// For gradient checks.
  virtual void to_double() = 0;
  /// Whether the parameters already have their initial values (TorchScript), or are to be drawn.
  virtual bool initialised() const = 0;
};

/// A built-in network for images of this form. Throws UsageError when the images are too small for it.
std::unique_ptr<Network> make_network(const std::string& name, const ImageForm& form);
/// A file written by torch.jit.save. Throws UsageError when it cannot be used for such images.
std::unique_ptr<Network> load_torchscript(const std::string& path, const ImageForm& form);

/// The module of resnet<6n+2> for CIFAR, n = blocks_per_stage.
torch::nn::Sequential make_resnet(int blocks_per_stage, const ImageForm& form);

/// Once per process: one thread per rank, since ranks fill the cores.
void limit_torch_threads();

}  // namespace fluentps::train
