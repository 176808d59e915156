/// A network on a data set: loss, gradient and evaluation by libtorch.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/batches.hpp"
#include "train/makers.hpp"
#include "train/network.hpp"
#include "train/random.hpp"

namespace fluentps::train {
namespace {

constexpr std::int64_t kEvaluationBatch = 250;
constexpr std::string_view kScriptPrefix = "torchscript:";

/// Matrices: normal with variance 1/fan_in (LeCun et al. 1998); filters: gain/fan_in. 1 for the scales of
/// normalizations, one dimension. Drawn by our own generator: libtorch's depends on the vector width.
void draw_initial(const NamedTensors& parameters, double filter_gain, std::uint64_t seed, float* into) {
  Random random{kWeightStream, seed};
  for (const auto& [name, tensor] : parameters) {
    const std::int64_t count = tensor.numel();
    if (tensor.dim() >= 2) {
      const double fan_in = static_cast<double>(count) / static_cast<double>(tensor.size(0));
      const double deviation = std::sqrt((tensor.dim() == 2 ? 1.0 : filter_gain) / fan_in);
      for (std::int64_t j = 0; j < count; ++j) into[j] = static_cast<float>(deviation * random.normal());
    } else {
      std::fill(into, into + count, name.ends_with("weight") ? 1.0F : 0.0F);
    }
    into += count;
  }
}

/// 2 (He et al. 2015) where normalizations follow the filters, else 1 (Caffe's "xavier"): with 2, LeNet's filters,
/// which no rectifiers follow, would start with logits far too large.
double filter_gain(Network& network) { return network.buffers().empty() ? 1.0 : 2.0; }

class NetworkProblem : public Problem {
 public:
  NetworkProblem(const ProblemOptions& options, std::shared_ptr<const DataSets> sets, std::unique_ptr<Network> network)
      : options_(options),
        sets_(std::move(sets)),
        network_(std::move(network)),
        order_({sets_->train.size(), options.workers, options.batch_size}, options.seed),
        augmentation_(parse_augmentation(options.augment, sets_->name)),
        named_parameters_(network_->parameters()) {
    for (const auto& [name, tensor] : named_parameters_) {
      parameters_.push_back(tensor);
      size_ += tensor.numel();
    }
    initial_.resize(static_cast<std::size_t>(size_));
    if (network_->initialised()) {
      copy_out(parameters_, initial_.data(), torch::kCPU);
    } else {
      draw_initial(named_parameters_, filter_gain(*network_), options.seed, initial_.data());
    }
    images_ = image_tensor(options.batch_size);
    labels_ = torch::empty({options.batch_size}, torch::kInt64);
  }

  std::vector<TensorSpec> tensors() const override {
    std::vector<TensorSpec> specs;
    for (const auto& [name, tensor] : named_parameters_) specs.push_back({name, tensor.sizes().vec()});
    return specs;
  }

  void initial_weights(std::span<float> weights) override {
    require_size(weights.size());
    std::copy(initial_.begin(), initial_.end(), weights.begin());
  }

  double gradient(std::span<const float> weights, Iteration i, std::span<float> gradient) override {
    require_size(weights.size());
    require_size(gradient.size());
    set_weights(weights, device_);
    load_batch(i);
    network_->set_training(true);
    const auto loss = torch::nn::functional::cross_entropy(network_->forward(images_.to(device_)), labels_.to(device_));
    const auto gradients = torch::autograd::grad({loss}, parameters_, {}, c10::nullopt, false, /*allow_unused=*/true);
    copy_out(gradients, gradient.data(), device_);
    if (device_.is_cuda()) torch::cuda::synchronize(device_.index());
    return loss.item<double>();
  }

  /// Debian's libtorch computes on the CPU only.
  bool move_to_gpu() override {
    if (!torch::cuda::is_available()) return false;
    network_->to_gpu();
    device_ = torch::Device(torch::kCUDA, parameters_.front().get_device());
    return true;
  }

  std::optional<Evaluation> evaluate(std::span<const float> weights) override {
    require_size(weights.size());
    set_weights(weights, torch::kCPU);
    const torch::NoGradGuard no_grad;
    network_->set_training(false);
    std::int64_t count = sets_->test.size();
    if (options_.evaluation_limit > 0) count = std::min<std::int64_t>(count, options_.evaluation_limit);
    Evaluation sum;
    for (std::int64_t first = 0; first < count; first += kEvaluationBatch) {
      const Evaluation part = evaluate_range(first, std::min(kEvaluationBatch, count - first));
      sum.loss += part.loss;
      sum.accuracy += part.accuracy;
    }
    return Evaluation{sum.loss / static_cast<double>(count), sum.accuracy / static_cast<double>(count)};
  }

  Iteration iterations_per_epoch() const override { return order_.iterations_per_epoch(); }

  std::string description() const override {
    const auto& form = sets_->train.form;
    return fmt::format("{}, {} parameters in {} tensors; {}, {} training and {} test images of {}x{}x{}",
                       options_.model, size_, parameters_.size(), sets_->name, sets_->train.size(), sets_->test.size(),
                       form.channels, form.height, form.width);
  }

  std::vector<std::pair<std::string, std::span<float>>> local_state() override {
    std::vector<std::pair<std::string, std::span<float>>> state;
    buffer_copies_.clear();
    for (const auto& [name, tensor] : network_->buffers()) {
      if (tensor.scalar_type() != torch::kFloat32 || !tensor.is_contiguous()) continue;
      // Of a CPU's tensor this is the tensor itself.
      const auto& copy = buffer_copies_.emplace_back(tensor, tensor.cpu()).second;
      state.emplace_back(name, std::span(copy.data_ptr<float>(), static_cast<std::size_t>(copy.numel())));
    }
    return state;
  }

  void adopt_local_state() override {
    const torch::NoGradGuard no_grad;
    for (auto& [tensor, copy] : buffer_copies_)
      if (tensor.is_cuda()) tensor.copy_(copy);
  }

 private:
  torch::Tensor image_tensor(std::int64_t count) const {
    const auto& form = sets_->train.form;
    return torch::empty({count, form.channels, form.height, form.width}, torch::kFloat32);
  }

  void require_size(std::size_t size) const {
    if (size == static_cast<std::size_t>(size_)) return;
    throw std::invalid_argument(fmt::format("{} has {} parameters, called with {}", options_.model, size_, size));
  }

  /// `where` the weights lie.
  void set_weights(std::span<const float> weights, torch::Device where) {
    const torch::NoGradGuard no_grad;
    auto* from = const_cast<float*>(weights.data());  // from_blob takes no const; it is only read
    for (auto& tensor : parameters_) {
      tensor.copy_(torch::from_blob(from, tensor.sizes(), torch::TensorOptions(torch::kFloat32).device(where)));
      from += tensor.numel();
    }
  }

  /// A tensor that the loss does not depend on has no gradient: zero.
  void copy_out(const std::vector<torch::Tensor>& tensors, float* into, torch::Device where) const {
    const torch::NoGradGuard no_grad;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      auto target = torch::from_blob(into, parameters_[t].sizes(), torch::TensorOptions(torch::kFloat32).device(where));
      if (tensors[t].defined())
        target.copy_(tensors[t]);
      else
        target.zero_();
      into += target.numel();
    }
  }

  void load_batch(Iteration i) {
    const auto part = order_.part(i, options_.worker);
    float* pixels = images_.data_ptr<float>();
    auto* labels = labels_.data_ptr<std::int64_t>();
    const std::uint64_t first = std::uint64_t{options_.worker.value} * options_.batch_size;
    for (std::size_t j = 0; j < part.size(); ++j) {
      prepare_augmented(*sets_, part[j], augmentation_, {options_.seed, i, first + j}, pixels);
      pixels += sets_->train.form.pixels();
      labels[j] = sets_->train.labels[part[j]];
    }
  }

  /// Sums, not means, over `count` test images.
  Evaluation evaluate_range(std::int64_t first, std::int64_t count) {
    auto images = image_tensor(count);
    auto labels = torch::empty({count}, torch::kInt64);
    for (std::int64_t j = 0; j < count; ++j) {
      prepare_image(*sets_, sets_->test, first + j, images.data_ptr<float>() + j * sets_->test.form.pixels());
      labels.data_ptr<std::int64_t>()[j] = sets_->test.labels[static_cast<std::size_t>(first + j)];
    }
    images = images.to(device_);
    labels = labels.to(device_);
    const auto logits = network_->forward(images);
    const auto options = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum);
    return {torch::nn::functional::cross_entropy(logits, labels, options).item<double>(),
            logits.argmax(1).eq(labels).sum().item<double>()};
  }

  ProblemOptions options_;
  std::shared_ptr<const DataSets> sets_;
  std::unique_ptr<Network> network_;
  DataOrder order_;
  Augmentation augmentation_;
  NamedTensors named_parameters_;
  std::vector<torch::Tensor> parameters_;
  std::int64_t size_ = 0;
  std::vector<float> initial_;
  torch::Device device_ = torch::kCPU;
  std::vector<std::pair<torch::Tensor, torch::Tensor>> buffer_copies_;  ///< running statistics, and them on the host
  torch::Tensor images_;
  torch::Tensor labels_;
};

}  // namespace

std::unique_ptr<Problem> make_network_problem(const ProblemOptions& options) {
  auto sets = load_data_sets(options.dataset, options.data);
  auto network = options.model.starts_with(kScriptPrefix)
                     ? load_torchscript(options.model.substr(kScriptPrefix.size()), sets->train.form)
                     : make_network(options.model, sets->train.form);
  return std::make_unique<NetworkProblem>(options, std::move(sets), std::move(network));
}

}  // namespace fluentps::train
