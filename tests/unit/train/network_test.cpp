/// The networks: sizes, gradients against differences, and training through the Problem interface.
#include "train/network.hpp"

#include <gtest/gtest.h>
#include <torch/script.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "fake_clock.hpp"
#include "fluentps/error.hpp"
#include "train/makers.hpp"
#include "train/problem.hpp"

namespace fluentps::train {
namespace {

namespace fs = std::filesystem;

struct SizeCase {
  const char* name;
  std::int64_t parameters;
};

class NetworkSize : public testing::TestWithParam<SizeCase> {};

TEST_P(NetworkSize, IsThePublishedOne) {
  std::int64_t n = 0;
  for (const auto& tensor : network_tensors(GetParam().name)) n += tensor.size();
  EXPECT_EQ(n, GetParam().parameters);
}

// softmax, mlp, lenet, cifar-quick: sums over in*out + out. resnet: He et al. 2016, table 6 (0.27, 0.46, 0.66, 0.85,
// 1.7 million). vgg16: 14,710,464 of 3x3 filters, 2*4,224 of the normalizations, 5,130 of the last layer.
INSTANTIATE_TEST_SUITE_P(All, NetworkSize,
                         testing::Values(SizeCase{"softmax", 784 * 10 + 10},
                                         SizeCase{"mlp", 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10},
                                         SizeCase{"lenet", 25 * 20 + 20 + 25 * 20 * 50 + 50 + 800 * 500 + 500 + 5010},
                                         SizeCase{"cifar-quick", 145'578}, SizeCase{"resnet20", 269'722},
                                         SizeCase{"resnet32", 464'154}, SizeCase{"resnet44", 658'586},
                                         SizeCase{"resnet56", 853'018}, SizeCase{"resnet110", 1'727'962},
                                         SizeCase{"vgg16", 14'710'464 + 2 * 4'224 + 5'130}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

struct Batch {
  torch::Tensor images;
  torch::Tensor labels;
};

double loss_of(Network& network, const Batch& batch) {
  const torch::NoGradGuard no_grad;
  return torch::nn::functional::cross_entropy(network.forward(batch.images), batch.labels).item<double>();
}

/// Central differences in float64 at a few coordinates of every third tensor or so.
void check_gradient(Network& network, const Batch& batch) {
  network.to_double();
  network.set_training(true);
  std::vector<torch::Tensor> parameters;
  for (const auto& [name, tensor] : network.parameters()) parameters.push_back(tensor);
  const auto loss = torch::nn::functional::cross_entropy(network.forward(batch.images), batch.labels);
  const auto gradients = torch::autograd::grad({loss}, parameters);
  constexpr double kStep = 1e-7;
  const std::size_t stride = std::max<std::size_t>(1, parameters.size() / 8);
  int informative = 0;
  for (std::size_t t = 0; t < parameters.size(); t += stride) {
    const auto flat = parameters[t].detach().view({-1});
    const std::int64_t j = static_cast<std::int64_t>(7919 * (t + 1)) % flat.numel();
    auto* value = flat.data_ptr<double>() + j;
    const double old = *value;
    *value = old + kStep;
    const double above = loss_of(network, batch);
    *value = old - kStep;
    const double below = loss_of(network, batch);
    *value = old;
    const double exact = gradients[t].reshape({-1})[j].item<double>();
    const double numeric = (above - below) / (2 * kStep);
    EXPECT_NEAR(exact, numeric, 1e-6 + 1e-4 * std::abs(exact)) << "tensor " << t << " element " << j;
    informative += std::abs(exact) > 1e-5 ? 1 : 0;
  }
  EXPECT_GE(informative, 2) << "the gradient is zero nearly everywhere";
}

class GradientCheck : public testing::TestWithParam<const char*> {};

TEST_P(GradientCheck, AgreesWithDifferences) {
  const std::string name = GetParam();
  const std::int64_t side = name == "vgg16" ? 32 : 16;
  torch::manual_seed(3);
  const auto network = make_network(name, {3, side, side, 10});
  const Batch batch{torch::randn({3, 3, side, side}, torch::kFloat64), torch::tensor({1, 7, 3}, torch::kInt64)};
  check_gradient(*network, batch);
}

INSTANTIATE_TEST_SUITE_P(All, GradientCheck,
                         testing::Values("softmax", "mlp", "lenet", "cifar-quick", "resnet20", "resnet56", "resnet110",
                                         "vgg16"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

// With all filters of the blocks zero, only the shortcuts pass: 16 channels in the middle of 32, these in the middle of
// 64, every fourth pixel in both directions.
TEST(Resnet, ShortcutsAreOptionA) {
  const auto network = make_network("resnet20", {3, 16, 16, 10});
  const torch::NoGradGuard no_grad;
  torch::Tensor stem_filters, last_matrix, last_bias;
  for (auto& [name, tensor] : network->parameters()) {
    if (name.starts_with("stage") && name.find("conv") != std::string::npos) tensor.zero_();
    if (name == "conv.weight") stem_filters = tensor;
    if (name == "fc.weight") last_matrix = tensor;
    if (name == "fc.bias") last_bias = tensor;
  }
  network->set_training(false);  // fresh statistics: the normalizations only divide by sqrt(1 + 1e-5)
  torch::manual_seed(5);
  const auto images = torch::randn({2, 3, 16, 16});
  const auto stem = torch::relu(torch::conv2d(images, stem_filters, {}, 1, 1));
  const auto seen = stem.index({torch::indexing::Slice(), torch::indexing::Slice(), torch::indexing::Slice(0, 16, 4),
                                torch::indexing::Slice(0, 16, 4)});
  const auto columns = last_matrix.index({torch::indexing::Slice(), torch::indexing::Slice(24, 40)});
  const auto wanted = torch::matmul(seen.mean({2, 3}), columns.t()) + last_bias;
  EXPECT_LT((network->forward(images) - wanted).abs().max().item<float>(), 1e-4F);
  EXPECT_GT(wanted.abs().max().item<float>(), 0.01F);
}

std::int64_t size_of(const Problem& problem) {
  const auto tensors = problem.tensors();
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0},
                         [](std::int64_t sum, const TensorSpec& tensor) { return sum + tensor.size(); });
}

ProblemOptions small_options(const std::string& model, const std::string& dataset) {
  ProblemOptions options;
  options.model = model;
  options.dataset = dataset;
  options.batch_size = 16;
  return options;
}

/// Losses of plain SGD.
std::vector<double> train(Problem& problem, int steps, float lr) {
  std::vector<float> weights(static_cast<std::size_t>(size_of(problem))), gradient(weights);
  problem.initial_weights(weights);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    losses.push_back(problem.gradient(weights, i, gradient));
    for (std::size_t j = 0; j < weights.size(); ++j) weights[j] -= lr * gradient[j];
  }
  return losses;
}

constexpr const char* kColour = "synthetic:images=256,test=100,channels=3,size=16";

TEST(NetworkProblem, LenetLearnsInThirtySteps) {
  const bool real = fs::exists("/usr/share/datasets/fashion-mnist");
  auto options = small_options("lenet", real ? "fashion-mnist" : "synthetic");
  options.batch_size = 64;
  FakeClock clock;
  const auto problem = make_problem(options, clock);
  const auto losses = train(*problem, 30, 0.02F);
  EXPECT_LT(losses.front(), 5);
  const auto mean = [&](int first) {
    return std::accumulate(losses.begin() + first, losses.begin() + first + 5, 0.0) / 5;
  };
  EXPECT_LT(mean(25), 0.6 * mean(0));
  EXPECT_LT(mean(25), 1.5);  // ln 10 = 2.30 is guessing
}

TEST(NetworkProblem, EvaluationFindsWhatWasLearnt) {
  FakeClock clock;
  auto options = small_options("softmax", "synthetic:images=200,test=100,classes=4");
  const auto problem = make_problem(options, clock);
  std::vector<float> weights(static_cast<std::size_t>(size_of(*problem))), gradient(weights);
  // All logits 0: the loss is ln 4, and argmax takes class 0: every fourth image is right.
  const auto blank = problem->evaluate(weights);
  EXPECT_NEAR(blank->loss, std::log(4.0), 1e-6);
  EXPECT_NEAR(blank->accuracy, 0.25, 1e-12);
  for (int i = 0; i < 20; ++i) {
    problem->gradient(weights, i, gradient);
    for (std::size_t j = 0; j < weights.size(); ++j) weights[j] -= 0.01F * gradient[j];
  }
  EXPECT_GT(problem->evaluate(weights)->accuracy, 0.9);
  options.evaluation_limit = 1;
  EXPECT_EQ(make_problem(options, clock)->evaluate(weights)->accuracy, 1.0);
}

// More images than are evaluated at once: with all logits 0 each contributes ln 3 and every third is right.
TEST(NetworkProblem, EvaluationCountsEveryImageOnce) {
  FakeClock clock;
  for (const int limit : {0, 750, 600, 1, 100'000}) {
    auto options = small_options("softmax", "synthetic:images=16,test=750,classes=3,size=8");
    options.evaluation_limit = static_cast<std::uint32_t>(limit);
    const auto problem = make_problem(options, clock);
    const std::vector<float> weights(static_cast<std::size_t>(size_of(*problem)));
    const auto evaluation = problem->evaluate(weights);
    EXPECT_NEAR(evaluation->loss, std::log(3.0), 1e-6) << limit;
    EXPECT_NEAR(evaluation->accuracy, limit == 1 ? 1 : 1.0 / 3, 1e-12) << limit;
  }
}

// N workers of batch B together are one worker of batch N*B, random flips and crops included.
TEST(NetworkProblem, WorkersTogetherAreOneBigWorker) {
  FakeClock clock;
  auto options = small_options("cifar-quick", kColour);
  options.augment = "flip+crop";
  options.batch_size = 32;
  const auto alone = make_problem(options, clock);
  std::vector<float> weights(static_cast<std::size_t>(size_of(*alone))), wanted(weights), part(weights), sum(weights);
  alone->initial_weights(weights);
  const double wanted_loss = alone->gradient(weights, 9, wanted);
  double loss = 0;
  options.workers = 4;
  options.batch_size = 8;
  for (std::uint32_t w = 0; w < 4; ++w) {
    options.worker = {w};
    const auto problem = make_problem(options, clock);
    std::vector<float> own(weights.size());
    problem->initial_weights(own);
    EXPECT_EQ(own, weights) << "initial weights depend on the worker";
    loss += problem->gradient(weights, 9, part) / 4;
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += part[j] / 4;
  }
  EXPECT_NEAR(loss, wanted_loss, 1e-5 * wanted_loss);
  double error = 0, norm = 0;
  for (std::size_t j = 0; j < sum.size(); ++j) {
    error += std::pow(static_cast<double>(sum[j]) - static_cast<double>(wanted[j]), 2);
    norm += std::pow(static_cast<double>(wanted[j]), 2);
  }
  EXPECT_GT(norm, 0);
  EXPECT_LT(std::sqrt(error / norm), 1e-5);
}

TEST(NetworkProblem, SameCallSameBits) {
  FakeClock clock;
  for (const char* model : {"lenet", "resnet20"}) {
    const auto one = make_problem(small_options(model, kColour), clock);
    const auto other = make_problem(small_options(model, kColour), clock);
    EXPECT_EQ(train(*one, 3, 0.1F), train(*other, 3, 0.1F)) << model;
  }
}

TEST(NetworkProblem, SeedsChangeTheStart) {
  FakeClock clock;
  auto options = small_options("softmax", kColour);
  const auto one = make_problem(options, clock);
  options.seed = 2;
  const auto two = make_problem(options, clock);
  std::vector<float> a(static_cast<std::size_t>(size_of(*one))), b(a);
  one->initial_weights(a);
  two->initial_weights(b);
  EXPECT_NE(a, b);
}

// LeCun et al. 1998: variance 1/fan_in. 768 inputs, 7,680 weights: the standard error of the variance is 1.6 %.
TEST(NetworkProblem, StartHasTheRightVariance) {
  FakeClock clock;
  const auto problem = make_problem(small_options("softmax", kColour), clock);
  std::vector<float> weights(static_cast<std::size_t>(size_of(*problem)));
  problem->initial_weights(weights);
  double square = 0;
  for (std::size_t j = 0; j < 7'680; ++j) square += static_cast<double>(weights[j]) * static_cast<double>(weights[j]);
  EXPECT_NEAR(square / 7'680, 1.0 / 768, 0.08 / 768);
  for (std::size_t j = 7'680; j < weights.size(); ++j) EXPECT_EQ(weights[j], 0);
}

TEST(NetworkProblem, RunningStatisticsAreLocalState) {
  FakeClock clock;
  const auto problem = make_problem(small_options("resnet20", kColour), clock);
  std::vector<float> weights(static_cast<std::size_t>(size_of(*problem))), gradient(weights);
  problem->initial_weights(weights);
  auto state = problem->local_state();
  ASSERT_EQ(state.size(), 2U * 19);  // mean and variance of 19 normalizations
  const auto sum_of_means = [&] {
    double sum = 0;
    for (const auto& [name, values] : state) {
      if (name.ends_with("running_mean")) {
        for (const float value : values) sum += std::abs(static_cast<double>(value));
      }
    }
    return sum;
  };
  EXPECT_EQ(sum_of_means(), 0);
  problem->gradient(weights, 0, gradient);
  const double after = sum_of_means();
  EXPECT_GT(after, 0);
  const auto evaluation = problem->evaluate(weights);
  EXPECT_EQ(sum_of_means(), after) << "evaluating changed the statistics";

  // Put into another worker's problem they give the same evaluation.
  const auto other = make_problem(small_options("resnet20", kColour), clock);
  const auto other_state = other->local_state();
  EXPECT_NE(other->evaluate(weights)->loss, evaluation->loss);
  for (std::size_t s = 0; s < state.size(); ++s) {
    std::copy(state[s].second.begin(), state[s].second.end(), other_state[s].second.begin());
  }
  EXPECT_EQ(other->evaluate(weights)->loss, evaluation->loss);
}

TEST(NetworkProblem, Refusals) {
  FakeClock clock;
  auto options = small_options("vgg16", kColour);
  EXPECT_THROW(make_problem(options, clock), UsageError);  // 16x16 images
  options = small_options("softmax", kColour);
  options.batch_size = 257;
  EXPECT_THROW(make_problem(options, clock), UsageError);
  options = small_options("softmax", kColour);
  std::vector<float> wrong(3);
  EXPECT_THROW(make_problem(options, clock)->initial_weights(wrong), std::invalid_argument);
}

/// Saves a module with the given parameters and source.
class TorchScript : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "fluentps-script-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string save(const NamedTensors& parameters, const std::string& source) const {
    torch::jit::Module module("Net");
    for (const auto& [name, tensor] : parameters) module.register_parameter(name, tensor, false);
    module.define(source);
    const std::string path = (directory_ / "net.pt").string();
    module.save(path);
    return path;
  }
  std::string refusal(const std::string& path) const {
    FakeClock clock;
    try {
      make_problem(small_options("torchscript:" + path, kColour), clock);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  }

  fs::path directory_;
};

TEST_F(TorchScript, TrainsLikeTheBuiltInNetwork) {
  constexpr const char* kFew = "synthetic:images=16,test=10,channels=3,size=16";  // one batch: the loss falls steadily
  FakeClock clock;
  const auto built_in = make_problem(small_options("lenet", kFew), clock);
  std::vector<float> weights(static_cast<std::size_t>(size_of(*built_in)));
  built_in->initial_weights(weights);
  NamedTensors parameters;
  std::int64_t offset = 0;
  for (const auto& tensor : built_in->tensors()) {
    parameters.emplace_back("p" + std::to_string(parameters.size()),
                            torch::from_blob(weights.data() + offset, tensor.shape).clone().requires_grad_());
    offset += tensor.size();
  }
  const auto path = save(parameters, R"(
def forward(self, x):
    x = torch.max_pool2d(torch.conv2d(x, self.p0, self.p1), [2, 2])
    x = torch.max_pool2d(torch.conv2d(x, self.p2, self.p3), [2, 2])
    x = torch.relu(torch.matmul(torch.flatten(x, 1), torch.t(self.p4)) + self.p5)
    return torch.matmul(x, torch.t(self.p6)) + self.p7
)");
  const auto scripted = make_problem(small_options("torchscript:" + path, kFew), clock);
  ASSERT_EQ(size_of(*scripted), size_of(*built_in));
  const auto wanted = train(*built_in, 12, 0.02F);
  const auto got = train(*scripted, 12, 0.02F);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-3 * wanted[i]) << "step " << i;
  EXPECT_LT(wanted.back(), 0.8 * wanted.front());
}

TEST_F(TorchScript, RefusalsSayWhatIsWrong) {
  const auto weight = [] { return torch::zeros({10, 768}).requires_grad_(); };
  const std::string good = "def forward(self, x):\n    return torch.matmul(torch.flatten(x, 1), torch.t(self.w))\n";
  EXPECT_EQ(refusal(save({{"w", weight()}}, good)), "accepted");
  EXPECT_NE(refusal(save({{"w", torch::zeros({9, 768}).requires_grad_()}}, good)).find("[2, 9], but logits [2, 10]"),
            std::string::npos);
  EXPECT_NE(refusal(save({{"w", torch::zeros({10, 700}).requires_grad_()}}, good)).find("images 3x16x16"),
            std::string::npos);
  EXPECT_NE(refusal(save({{"w", torch::zeros({10, 768}, torch::kFloat64).requires_grad_()}}, good)).find("float32"),
            std::string::npos);
  EXPECT_NE(refusal(save({}, "def forward(self, x):\n    return torch.flatten(x, 1)\n")).find("no trainable"),
            std::string::npos);
  EXPECT_NE(refusal((directory_ / "none.pt").string()).find("does not exist"), std::string::npos);
  EXPECT_NE(refusal("/etc/hostname").find("torch.jit.save"), std::string::npos);
}

}  // namespace
}  // namespace fluentps::train
