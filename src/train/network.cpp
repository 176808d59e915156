/// The plain built-in networks, and the choice by name.
#include "train/network.hpp"

#include <fmt/format.h>

#include <map>

#include "fluentps/error.hpp"
#include "text/words.hpp"
#include "train/makers.hpp"

namespace fluentps::train {
namespace {

namespace nn = torch::nn;

class ModuleNetwork : public Network {
 public:
  explicit ModuleNetwork(nn::Sequential module) : module_(std::move(module)) {}

  torch::Tensor forward(const torch::Tensor& images) override { return module_->forward(images); }
  NamedTensors parameters() override { return named(module_->named_parameters()); }
  NamedTensors buffers() override { return named(module_->named_buffers()); }
  void set_training(bool on) override { module_->train(on); }
  void to_gpu() override { module_->to(torch::kCUDA); }
  void to_double() override { module_->to(torch::kFloat64); }
  bool initialised() const override { return false; }

 private:
  static NamedTensors named(const torch::OrderedDict<std::string, torch::Tensor>& tensors) {
    NamedTensors result;
    for (const auto& item : tensors) result.emplace_back(item.key(), item.value());
    return result;
  }
  nn::Sequential module_;
};

nn::Functional relu() {
  return nn::Functional([](const torch::Tensor& x) { return torch::relu(x); });
}

nn::Sequential make_softmax(const ImageForm& form) {
  nn::Sequential net;
  net->push_back("flatten", nn::Flatten());
  net->push_back("fc", nn::Linear(form.pixels(), form.classes));
  return net;
}

nn::Sequential make_mlp(const ImageForm& form) {
  nn::Sequential net;
  net->push_back("flatten", nn::Flatten());
  net->push_back("fc1", nn::Linear(form.pixels(), 256));
  net->push_back("relu1", relu());
  net->push_back("fc2", nn::Linear(256, 128));
  net->push_back("relu2", relu());
  net->push_back("fc3", nn::Linear(128, form.classes));
  return net;
}

/// Caffe's LeNet: LeCun et al. 1998 with max pooling and one rectifier.
nn::Sequential make_lenet(const ImageForm& form) {
  const auto after = [](std::int64_t extent) { return ((extent - 4) / 2 - 4) / 2; };
  nn::Sequential net;
  net->push_back("conv1", nn::Conv2d(nn::Conv2dOptions(form.channels, 20, 5)));
  net->push_back("pool1", nn::MaxPool2d(nn::MaxPool2dOptions(2)));
  net->push_back("conv2", nn::Conv2d(nn::Conv2dOptions(20, 50, 5)));
  net->push_back("pool2", nn::MaxPool2d(nn::MaxPool2dOptions(2)));
  net->push_back("flatten", nn::Flatten());
  net->push_back("fc1", nn::Linear(50 * after(form.height) * after(form.width), 500));
  net->push_back("relu", relu());
  net->push_back("fc2", nn::Linear(500, form.classes));
  return net;
}

/// Caffe's cifar10_quick: 3 convolutions of 5x5, pooling 3x3 in steps of 2 (first max, then mean), 2 linear layers.
nn::Sequential make_cifar_quick(const ImageForm& form) {
  const auto halved = [](std::int64_t extent) { return (extent - 3 + 1) / 2 + 1; };
  const auto after = [&](std::int64_t extent) { return halved(halved(halved(extent))); };
  const auto conv = [](std::int64_t in, std::int64_t out) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, 5).padding(2));
  };
  const auto mean_pool = [] { return nn::AvgPool2d(nn::AvgPool2dOptions(3).stride(2).ceil_mode(true)); };
  nn::Sequential net;
  net->push_back("conv1", conv(form.channels, 32));
  net->push_back("pool1", nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).ceil_mode(true)));
  net->push_back("relu1", relu());
  net->push_back("conv2", conv(32, 32));
  net->push_back("relu2", relu());
  net->push_back("pool2", mean_pool());
  net->push_back("conv3", conv(32, 64));
  net->push_back("relu3", relu());
  net->push_back("pool3", mean_pool());
  net->push_back("flatten", nn::Flatten());
  net->push_back("fc1", nn::Linear(64 * after(form.height) * after(form.width), 64));
  net->push_back("fc2", nn::Linear(64, form.classes));
  return net;
}

/// VGG-16 (Simonyan and Zisserman 2015, configuration D) in its CIFAR form: batch normalization, one linear layer.
nn::Sequential make_vgg16(const ImageForm& form) {
  constexpr std::int64_t kPool = 0;
  constexpr std::int64_t kWidths[] = {64,    64,  kPool, 128, 128,   kPool, 256, 256, 256,
                                      kPool, 512, 512,   512, kPool, 512,   512, 512, kPool};
  nn::Sequential net;
  std::int64_t channels = form.channels;
  int conv = 0;
  int pool = 0;
  for (const auto width : kWidths) {
    if (width == kPool) {
      net->push_back(fmt::format("pool{}", ++pool), nn::MaxPool2d(nn::MaxPool2dOptions(2)));
      continue;
    }
    ++conv;
    net->push_back(fmt::format("conv{}", conv),
                   nn::Conv2d(nn::Conv2dOptions(channels, width, 3).padding(1).bias(false)));
    net->push_back(fmt::format("bn{}", conv), nn::BatchNorm2d(width));
    net->push_back(fmt::format("relu{}", conv), relu());
    channels = width;
  }
  net->push_back("flatten", nn::Flatten());
  net->push_back("fc", nn::Linear(channels * (form.height / 32) * (form.width / 32), form.classes));
  return net;
}

struct Entry {
  std::string name;
  std::int64_t smallest;  ///< side of the image, pixels
  bool cifar;             ///< usual form: CIFAR, else MNIST
  nn::Sequential (*make)(const ImageForm&);
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = {
      {"softmax", 1, false, make_softmax},
      {"mlp", 1, false, make_mlp},
      {"lenet", 16, false, make_lenet},
      {"cifar-quick", 15, true, make_cifar_quick},
      {"resnet20", 8, true, [](const ImageForm& form) { return make_resnet(3, form); }},
      {"resnet32", 8, true, [](const ImageForm& form) { return make_resnet(5, form); }},
      {"resnet44", 8, true, [](const ImageForm& form) { return make_resnet(7, form); }},
      {"resnet56", 8, true, [](const ImageForm& form) { return make_resnet(9, form); }},
      {"resnet110", 8, true, [](const ImageForm& form) { return make_resnet(18, form); }},
      {"vgg16", 32, true, make_vgg16},
  };
  return table;
}

const Entry& find_entry(const std::string& name) {
  for (const auto& entry : entries()) {
    if (entry.name == name) return entry;
  }
  throw UsageError(fmt::format("--model: unknown network '{}', did you mean '{}'? Valid: {}", name,
                               nearest_name(name, network_names()), join_names(network_names())));
}

}  // namespace

const std::vector<std::string>& network_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto& entry : entries()) result.push_back(entry.name);
    return result;
  }();
  return names;
}

std::unique_ptr<Network> make_network(const std::string& name, const ImageForm& form) {
  const Entry& entry = find_entry(name);
  if (form.height < entry.smallest || form.width < entry.smallest) {
    throw UsageError(
        fmt::format("--model {} needs images of at least {}x{}, the data set's are {}x{}: use --dataset "
                    "cifar10 or another model",
                    name, entry.smallest, entry.smallest, form.height, form.width));
  }
  limit_torch_threads();
  return std::make_unique<ModuleNetwork>(entry.make(form));
}

std::vector<TensorSpec> network_tensors(const std::string& name) {
  const ImageForm form = find_entry(name).cifar ? ImageForm{3, 32, 32, 10} : ImageForm{1, 28, 28, 10};
  std::vector<TensorSpec> specs;
  for (const auto& [tensor_name, tensor] : make_network(name, form)->parameters()) {
    specs.push_back({tensor_name, tensor.sizes().vec()});
  }
  return specs;
}

void limit_torch_threads() {
  // A second call of the inter-op setter throws, and simulated ranks share a process.
  static const bool once = [] {
    at::set_num_threads(1);
    at::set_num_interop_threads(1);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace fluentps::train
