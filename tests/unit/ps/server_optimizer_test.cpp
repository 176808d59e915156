/// An optimizer on the server: one step per aggregate, with the workers' learning rate. Expected values by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "fluentps/error.hpp"
#include "server_bench.hpp"
#include "shard/shard_layers.hpp"

namespace fluentps::test {
namespace {

class OptimizerBench : public Bench {
 public:
  OptimizerBench(const std::string& sync, std::uint32_t workers, const UpdateRuleOptions& rule,
                 std::int64_t elements = 40)
      : Bench(sync, workers, elements, 4, Release::kLazy, [&](ServerOptions& options) {
          options.optimizer = rule;
          options.layers = {{0, elements}};
        }) {}
};

UpdateRuleOptions rule(const std::string& name) {
  UpdateRuleOptions options;
  options.name = name;
  options.momentum = 0.5;
  return options;
}

TEST(ServerOptimizer, BspStepsOncePerAdvanceWithTheMeanGradient) {
  // Receive: gradients 2 and 4 twice, lr 0.1, then 0.01, momentum 0.5 onto weights of 1.
  // Expect: v = 3, w = 1 - 0.3; then v = 4.5, w = 0.7 - 0.045.
  OptimizerBench bench("bsp", 2, rule("momentum"));
  bench.initialize(1);
  bench.lr = 0.1;
  bench.push(0, 0, 2);
  EXPECT_EQ(bench.weight(), 1.0F);
  bench.push(1, 0, 4);
  EXPECT_NEAR(bench.weight(), 0.7, 1e-6);
  bench.lr = 0.01;
  bench.push(1, 1, 4);
  bench.push(0, 1, 2);
  EXPECT_NEAR(bench.weight(), 0.655, 1e-6);
  EXPECT_NEAR(bench.grants(0).back().payload.back(), 0.655, 1e-6) << "the last chunk too";
}

TEST(ServerOptimizer, AdamMatchesHandSteps) {
  // Kingma and Ba, algorithm 1, with g = 3 then 1: m = 0.3, 0.37; v = 0.009, 0.009991; corrected 3 and 9, 0.37/0.19 and
  // 0.009991/0.001999.
  OptimizerBench bench("bsp", 2, rule("adam"));
  bench.initialize(1);
  bench.lr = 0.1;
  for (std::uint32_t w : {0U, 1U}) bench.push(w, 0, w == 0 ? 2 : 4);
  const double first = 1 - 0.1 * 3 / (3 + 1e-8);
  EXPECT_NEAR(bench.weight(), first, 1e-6);
  for (std::uint32_t w : {0U, 1U}) bench.push(w, 1, 1);
  EXPECT_NEAR(bench.weight(), first - 0.1 * (0.37 / 0.19) / std::sqrt(0.009991 / 0.001999), 1e-5);
}

TEST(ServerOptimizer, AspStepsAtEveryPushWithAShareOfTheLearningRate) {
  // Receive: gradients 2, then 4, of two workers, lr 0.1: each step has lr 0.05.
  // Expect: plain sgd sums up to what bsp makes of them; with momentum v = 2, then 0.5 * 2 + 4 = 5.
  OptimizerBench plain("asp", 2, rule("sgd"));
  plain.initialize(1);
  plain.lr = 0.1;
  plain.push(0, 0, 2);
  EXPECT_NEAR(plain.weight(), 0.9, 1e-6);
  plain.push(1, 0, 4);
  EXPECT_NEAR(plain.weight(), 0.7, 1e-6);
  OptimizerBench momentum("ssp:s=3", 2, rule("momentum"));
  momentum.initialize(1);
  momentum.lr = 0.1;
  momentum.push(0, 0, 2);
  momentum.push(1, 0, 4);
  EXPECT_NEAR(momentum.weight(), 1 - 0.05 * 2 - 0.05 * 5, 1e-6);
}

TEST(ServerOptimizer, PushesThatInterleaveAreStepsOfTheirOwn) {
  // Receive: the first chunk of worker 0, all of worker 1, the rest of worker 0.
  // Expect: worker 1 waits for worker 0's push, and is applied after it without another message.
  OptimizerBench bench("asp", 2, rule("momentum"));
  bench.initialize(1);
  bench.lr = 0.1;
  bench.send_chunk(0, MessageKind::kPush, 0, 0, 2, kWantPull);
  bench.push(1, 0, 4);
  EXPECT_TRUE(bench.grants(1).empty());
  bench.send_chunk(0, MessageKind::kPush, 0, 1, 2, kWantPull);
  bench.send_chunk(0, MessageKind::kPush, 0, 2, 2, kWantPull);
  EXPECT_EQ(bench.grants(0).size(), 1U);
  const auto grants = bench.grants(1);
  ASSERT_EQ(grants.size(), 1U);
  for (const float each : grants[0].payload) EXPECT_NEAR(each, 1 - 0.05 * 2 - 0.05 * 5, 1e-6);
}

TEST(ServerOptimizer, SoftsyncStepsOncePerGroup) {
  // n=2 of 4 workers: groups of two. Receive: 1, 3 | 5, 7 at lr 0.1. Expect: 1 - 0.2, then v = 0.5 * 2 + 6 = 7.
  OptimizerBench bench("softsync:n=2", 4, rule("momentum"));
  bench.initialize(1);
  bench.lr = 0.1;
  bench.push(0, 0, 1);
  EXPECT_EQ(bench.weight(), 1.0F);
  bench.push(1, 0, 3);
  EXPECT_NEAR(bench.weight(), 0.8, 1e-6);
  bench.push(2, 0, 5);
  bench.push(3, 0, 7);
  EXPECT_NEAR(bench.weight(), 0.8 - 0.7, 1e-6);
}

TEST(ServerOptimizer, DropStepsOnceWithThoseThatCame) {
  OptimizerBench bench("drop:n=2", 3, rule("sgd"));
  bench.initialize(1);
  bench.lr = 0.1;
  bench.push(0, 0, 2);
  bench.push(2, 0, 4);
  EXPECT_NEAR(bench.weight(), 0.7, 1e-6);
  bench.push(1, 0, 100);
  EXPECT_NEAR(bench.weight(), 0.7, 1e-6);
}

TEST(ShardLayers, FollowTensorsAndRefuseParts) {
  const std::vector<TensorSpec> tensors = {{"a", {32}}, {"b", {16}}, {"c", {48}}};
  const ShardMap whole(tensors, 2, Slicing::kTensor);  // a and c on server 0, b on server 1
  const auto layers = shard_layers(tensors, whole, ServerIndex{0});
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].count, 32);
  EXPECT_EQ(layers[1].offset, 32);
  EXPECT_EQ(layers[1].count, 48);
  EXPECT_NO_THROW(require_whole_tensors(tensors, whole));
  // 48 elements each: the cut lies at the end of b, so nothing is parted; with three servers it is.
  EXPECT_NO_THROW(require_whole_tensors(tensors, ShardMap(tensors, 2, Slicing::kEps)));
  EXPECT_THROW(require_whole_tensors(tensors, ShardMap(tensors, 3, Slicing::kEps)), UsageError);
}

class StateBench : public Bench {
 public:
  explicit StateBench(const std::string& sync, Iteration first = 0, std::uint32_t workers = 2)
      : Bench(sync, workers, 40, 4, Release::kLazy, [this, first](ServerOptions& options) {
          options.optimizer = rule("momentum");
          options.controller.first_iteration = first;
          options.checkpoint = [this](Iteration iteration, const State& state) {
            saved_at = iteration;
            for (const auto& [name, values] : state.arrays) saved[name] = {values.begin(), values.end()};
            return trace::WrittenFile{1234, 0xFEDCBA98U};
          };
        }) {}
  Iteration saved_at = -1;
  std::map<std::string, std::vector<float>> saved;
};

TEST(ServerCheckpoint, WritesWeightsAndOptimizerAndAnswers) {
  StateBench bench("bsp");
  bench.initialize(1);
  bench.lr = 0.1;
  for (std::uint32_t w : {0U, 1U}) bench.push(w, 0, 3);
  bench.receive(0, {.kind = MessageKind::kCheckpoint, .iteration = 1});
  const auto answers = bench.network.take(0, MessageKind::kCheckpointed);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].header.v, 1234);
  EXPECT_EQ(answers[0].header.version, 0xFEDCBA98U);
  EXPECT_EQ(bench.saved_at, 1);
  EXPECT_NEAR(bench.saved["weights"].at(39), 0.7, 1e-6);
  EXPECT_NEAR(bench.saved["momentum/velocity"].at(39), 3, 1e-6);
}

TEST(ServerCheckpoint, RefusesWhereAWorkerIsElsewhere) {
  StateBench bench("asp");
  bench.initialize(1);
  bench.push(0, 0, 3);
  EXPECT_THROW(bench.receive(0, {.kind = MessageKind::kCheckpoint, .iteration = 1}), ProtocolError);
  EXPECT_EQ(bench.saved_at, -1);
}

TEST(ServerCheckpoint, AppliesAGroupThatIsNotFull) {
  // n=2 of 5 workers: groups of two, so after one iteration a single push of 9 is left over. lr 0.1, momentum 0.5:
  // v = 2, then 0.5 * 2 + 4 = 5, then 0.5 * 5 + 9 = 11.5.
  StateBench bench("softsync:n=2", 0, 5);
  bench.initialize(1);
  bench.lr = 0.1;
  for (std::uint32_t w = 0; w < 5; ++w) bench.push(w, 0, w == 4 ? 9.0F : w < 2 ? 2.0F : 4.0F);
  EXPECT_NEAR(bench.weight(), 1 - 0.2 - 0.5, 1e-6);
  bench.receive(0, {.kind = MessageKind::kCheckpoint, .iteration = 1});
  EXPECT_NEAR(bench.saved["weights"].at(39), 1 - 0.2 - 0.5 - 1.15, 1e-6);
}

TEST(ServerCheckpoint, AResumedServerGoesOnWhereItWas) {
  // Receive: at iteration 7, pulls of 6, then pushes of 7 onto weights and velocity set beforehand.
  // Expect: pulls answered at once with these weights at V = 7, the step takes the velocity on, and 6 is refused.
  StateBench bench("bsp", 7);
  for (auto& [name, values] : bench.server->state().arrays)
    std::fill(values.begin(), values.end(), name == "weights" ? 5.0F : 2.0F);
  for (std::uint32_t w : {0U, 1U}) {
    bench.receive(w, {.kind = MessageKind::kPull, .iteration = 6});
    const auto grants = bench.grants(w);
    ASSERT_EQ(grants.size(), 1U);
    EXPECT_EQ(grants[0].payload, std::vector<float>(40, 5.0F));
    EXPECT_EQ(grants[0].header.v, 7);
  }
  EXPECT_THROW(bench.push(0, 6, 1), ProtocolError);
  StateBench fresh("bsp", 7);
  for (auto& [name, values] : fresh.server->state().arrays)
    std::fill(values.begin(), values.end(), name == "weights" ? 5.0F : 2.0F);
  fresh.lr = 0.1;
  fresh.push(0, 7, 3);
  EXPECT_TRUE(fresh.grants(0).empty());
  fresh.push(1, 7, 3);
  EXPECT_EQ(fresh.grants(0).size(), 1U);
  EXPECT_NEAR(fresh.weight(), 5 - 0.1 * (0.5 * 2 + 3), 1e-6);
}

TEST(ServerStop, NamesAnIterationThatNobodyHasPassed) {
  // Worker 0 has pushed 0 to 4 and its answer of 4, so it may be pushing 5; worker 1 is at 2.
  // Receive: a wish to stop of worker 1. Expect: every answer from now on names 6, however often it is asked.
  StateBench bench("asp");
  bench.initialize(1);
  for (Iteration i = 0; i < 5; ++i) bench.push(0, i, 1);
  for (Iteration i = 0; i < 2; ++i) bench.push(1, i, 1);
  for (const auto& each : bench.grants(0)) EXPECT_EQ(each.header.stop_at, 0);
  bench.receive(1, {.kind = MessageKind::kStop});
  bench.push(0, 5, 1);
  EXPECT_EQ(bench.grants(0).back().header.stop_at, 6);
  bench.receive(0, {.kind = MessageKind::kStop});
  bench.grants(1);
  bench.push(1, 2, 1);
  EXPECT_EQ(bench.grants(1).back().header.stop_at, 6);
}

}  // namespace
}  // namespace fluentps::test
