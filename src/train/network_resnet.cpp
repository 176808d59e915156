/// Residual networks for CIFAR (He et al. 2016, section 4.2): 6n+2 layers, 16-32-64 channels, shortcuts without
/// parameters ("option A": every other pixel, missing channels zero).
#include <fmt/format.h>

#include "train/network.hpp"

namespace fluentps::train {
namespace {

namespace nn = torch::nn;

nn::Conv2d conv3x3(std::int64_t in, std::int64_t out, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
}

class BlockImpl : public nn::Module {
 public:
  BlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : stride_(stride),
        added_channels_(out - in),
        conv1_(register_module("conv1", conv3x3(in, out, stride))),
        bn1_(register_module("bn1", nn::BatchNorm2d(out))),
        conv2_(register_module("conv2", conv3x3(out, out, 1))),
        bn2_(register_module("bn2", nn::BatchNorm2d(out))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    auto y = torch::relu(bn1_->forward(conv1_->forward(x)));
    y = bn2_->forward(conv2_->forward(y));
    return torch::relu(y + shortcut(x));
  }

 private:
  torch::Tensor shortcut(const torch::Tensor& x) const {
    if (added_channels_ == 0 && stride_ == 1) return x;
    const auto smaller = x.slice(2, 0, x.size(2), stride_).slice(3, 0, x.size(3), stride_);
    const auto before = added_channels_ / 2;
    return torch::constant_pad_nd(smaller, {0, 0, 0, 0, before, added_channels_ - before});
  }

  std::int64_t stride_;
  std::int64_t added_channels_;
  nn::Conv2d conv1_;
  nn::BatchNorm2d bn1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d bn2_;
};
TORCH_MODULE(Block);

}  // namespace

torch::nn::Sequential make_resnet(int blocks_per_stage, const ImageForm& form) {
  nn::Sequential net;
  std::int64_t channels = 16;
  net->push_back("conv", conv3x3(form.channels, channels, 1));
  net->push_back("bn", nn::BatchNorm2d(channels));
  net->push_back("relu", nn::Functional([](const torch::Tensor& x) { return torch::relu(x); }));
  for (int stage = 0; stage < 3; ++stage) {
    const std::int64_t width = std::int64_t{16} << stage;
    for (int block = 0; block < blocks_per_stage; ++block) {
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      net->push_back(fmt::format("stage{}_block{}", stage + 1, block + 1), Block(channels, width, stride));
      channels = width;
    }
  }
  net->push_back("pool", nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions(1)));
  net->push_back("flatten", nn::Flatten());
  net->push_back("fc", nn::Linear(channels, form.classes));
  return net;
}

}  // namespace fluentps::train
