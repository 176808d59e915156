/// What a node's GPUs must be; each refusal says what is needed and what is there.
#include "net/gpu_preflight.hpp"

#include <gtest/gtest.h>

#include "fluentps/error.hpp"
#include "net/gpu_transfer.hpp"

namespace fluentps {
namespace {

/// Four ranks on a node of four GPUs that all see.
GpuFacts enough() { return {.devices = 4, .driver_version = 12080, .runtime_version = 12040, .own = 0, .own_id = 1}; }

std::string refusal(const GpuFacts& facts, int ranks, int distinct) {
  try {
    require_gpus(facts, ranks, distinct, "node7");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const auto& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(GpuPreflight, EnoughPasses) {
  EXPECT_EQ(refusal(enough(), 4, 4), "");
  // A newer run-time library of the same major version is served.
  auto older = enough();
  older.driver_version = 12020;
  EXPECT_EQ(refusal(older, 4, 4), "");
}

TEST(GpuPreflight, MoreRanksThanDevices) {
  expect_words(refusal(enough(), 6, 4), {"6 ranks on node7", "have 4", "start 4 ranks a node"});
}

TEST(GpuPreflight, NoDriver) {
  auto facts = enough();
  facts.driver_version = 0;
  expect_words(refusal(facts, 1, 1), {"node7", "no NVIDIA driver", "CUDA 12.4"});
}

TEST(GpuPreflight, OldDriver) {
  auto facts = enough();
  facts.driver_version = 11080;
  expect_words(refusal(facts, 1, 1), {"node7", "CUDA 11.8", "CUDA 12.4"});
}

TEST(GpuPreflight, NoDevice) {
  auto facts = enough();
  facts.devices = 0;
  expect_words(refusal(facts, 1, 0), {"node7", "no GPU", "CUDA_VISIBLE_DEVICES"});
}

TEST(GpuTransferOption, Values) {
  EXPECT_EQ(parse_gpu_transfer("staged"), GpuTransfer::kStaged);
  EXPECT_EQ(to_string(GpuTransfer::kAuto), "auto");
  EXPECT_THROW(parse_gpu_transfer("stagd"), UsageError);
}

}  // namespace
}  // namespace fluentps
