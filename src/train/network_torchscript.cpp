/// Networks from a TorchScript file.
#include <fmt/format.h>
#include <torch/script.h>

#include <filesystem>

#include "fluentps/error.hpp"
#include "train/network.hpp"

namespace fluentps::train {
namespace {

class ScriptNetwork : public Network {
 public:
  explicit ScriptNetwork(torch::jit::Module module) : module_(std::move(module)) {}

  torch::Tensor forward(const torch::Tensor& images) override { return module_.forward({images}).toTensor(); }
  NamedTensors parameters() override {
    NamedTensors result;
    for (const auto& item : module_.named_parameters()) {
      if (item.value.requires_grad()) result.emplace_back(item.name, item.value);
    }
    return result;
  }
  NamedTensors buffers() override {
    NamedTensors result;
    for (const auto& item : module_.named_buffers()) result.emplace_back(item.name, item.value);
    return result;
  }
  void set_training(bool on) override { module_.train(on); }
  void to_gpu() override { module_.to(torch::kCUDA); }
  void to_double() override { module_.to(torch::kFloat64); }
  bool initialised() const override { return true; }

 private:
  torch::jit::Module module_;
};

/// libtorch's messages carry a stack trace; the first line says it all.
std::string first_line(const char* text) {
  const std::string all(text);
  return all.substr(0, all.find('\n'));
}

void require_usable(Network& network, const std::string& path, const ImageForm& form) {
  const auto parameters = network.parameters();
  if (parameters.empty()) {
    throw UsageError(fmt::format("{} holds no trainable parameters: script a module with parameters", path));
  }
  for (const auto& [name, tensor] : parameters) {
    if (tensor.scalar_type() == torch::kFloat32 && tensor.is_contiguous()) continue;
    throw UsageError(
        fmt::format("{}: parameter {} is not contiguous float32: call module.float() and contiguous() "
                    "before saving",
                    path, name));
  }
  const torch::NoGradGuard no_grad;
  network.set_training(false);
  const auto logits = network.forward(torch::zeros({2, form.channels, form.height, form.width}));
  if (logits.dim() != 2 || logits.size(0) != 2 || logits.size(1) != form.classes) {
    std::string shape;
    for (const auto extent : logits.sizes()) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", extent);
    throw UsageError(
        fmt::format("{} turns two images into a tensor [{}], but logits [2, {}] are needed: make forward "
                    "return one value per class",
                    path, shape, form.classes));
  }
}

}  // namespace

std::unique_ptr<Network> load_torchscript(const std::string& path, const ImageForm& form) {
  if (!std::filesystem::is_regular_file(path)) {
    throw UsageError(
        fmt::format("--model torchscript: file '{}' does not exist: give the path of a file written by "
                    "torch.jit.save",
                    path));
  }
  limit_torch_threads();
  try {
    auto network = std::make_unique<ScriptNetwork>(torch::jit::load(path));
    require_usable(*network, path, form);
    return network;
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    throw UsageError(fmt::format("{} cannot be used on images {}x{}x{} ({}): save it with torch.jit.save", path,
                                 form.channels, form.height, form.width, first_line(error.what())));
  }
}

}  // namespace fluentps::train
