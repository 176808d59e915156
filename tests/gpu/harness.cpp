/// Checks of everything in src/gpu on one GPU, without MPI: `harness` prints a line for each, "name|passed|detail", and
/// exits 0. A check that has failed says so in its line; a harness that dies is told apart by its exit code.
///   harness [short] [kernels norms apply staging nccl]      short: small arrays, for compute-sanitizer
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "fluentps/error.hpp"
#include "gpu/cuda_device.hpp"
#include "gpu/nccl_group.hpp"
#include "gpu/open_device.hpp"
#include "shard/device_memory.hpp"
#include "shard/shard_path.hpp"

namespace fluentps {
namespace {

constexpr std::size_t kParameters = 61'000'000;  ///< AlexNet's, the largest model of the paper's kind
constexpr double kApplyTarget = 0.85;            ///< of a copy's bandwidth
constexpr double kStagingTarget = 0.80;          ///< of the slower of its two stages

bool is_short = false;  ///< from the command line

struct Failure {
  std::string why;
};
void require(bool good, const std::string& why) {
  if (!good) throw Failure{why};
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// An array of `n` elements that begins `shift` elements after an aligned address, on the host and on the device.
template <typename T>
class Twin {
 public:
  using Value = std::remove_const_t<T>;
  Twin(Device& device, std::size_t n, std::size_t shift, bool positive, std::mt19937& random)
      : device_(device),
        n_(n + shift + kGuard),
        shift_(shift),
        host_(pinned_array<Value>(device, n_)),
        back_(pinned_array<Value>(device, n_)),
        on_device_(device_array<Value>(device, n_)) {
    std::uniform_real_distribution<float> draw(positive ? 0.1F : -2.0F, 2.0F);
    for (auto& each : host_.span()) {
      if constexpr (std::is_same_v<Value, float>)
        each = draw(random);
      else
        each = static_cast<Value>(random() & 0xBFFFU);  // neither infinite nor NaN in either format
    }
    device.copy_in(on_device_.bytes(), host_.bytes(), n_ * sizeof(Value));
    device.synchronize(DeviceStream::kIn);
  }
  T* host() const { return host_.span().data() + shift_; }
  T* device() const { return on_device_.span().data() + shift_; }
  /// Bit for bit, what lies around the array included.
  bool same() const {
    device_.copy_out(back_.bytes(), on_device_.bytes(), n_ * sizeof(Value));
    device_.synchronize(DeviceStream::kOut);
    return std::memcmp(back_.bytes(), host_.bytes(), n_ * sizeof(Value)) == 0;
  }

 private:
  static constexpr std::size_t kGuard = 8;
  Device& device_;
  std::size_t n_;
  std::size_t shift_;
  DeviceArray<Value> host_;
  DeviceArray<Value> back_;
  DeviceArray<Value> on_device_;
};

std::string differs(const char* name, std::size_t n, std::size_t shift, bool mixed) {
  return fmt::format("{} of {} elements, shift {}{}, differs from the host", name, n, shift, mixed ? ", mixed" : "");
}

/// One functor on the device and on the host. `mixed`: the arrays are misaligned differently.
template <typename F, typename... T>
void check_pass(Device& device, const char* name, F f) {
  const std::size_t largest = is_short ? (1U << 12U) + 3U : (1U << 23U) + 3U;
  constexpr bool kPositive = std::is_same_v<F, elementwise::Adam>;  // of a negative moment there is no root
  std::mt19937 random{3};
  for (const std::size_t n : std::vector<std::size_t>{0, 1, 3, 4, 5, 8, 1001, largest})
    for (const std::size_t shift : {0U, 1U, 2U, 3U})
      for (const bool mixed : {false, true}) {
        std::size_t own = shift;
        const auto next = [&] { return mixed ? own++ % 4 : own; };
        std::tuple<Twin<T>...> twins{Twin<T>(device, n, next(), kPositive, random)...};
        std::apply(
            [&](auto&... twin) {
              run_on_host(PassOf<F, T...>{f, {twin.host()...}, static_cast<std::int64_t>(n)});
            },
            twins);
        std::apply([&](auto&... twin) { device.run(make_pass(f, n, static_cast<T*>(twin.device())...)); }, twins);
        device.synchronize(DeviceStream::kCompute);
        const bool same = std::apply([](auto&... twin) { return (twin.same() && ...); }, twins);
        require(same, differs(name, n, shift, mixed));
      }
}

std::string kernels(Device& device) {
  using namespace elementwise;
  using In = const float;
  check_pass<Store, float, In>(device, "store", {});
  check_pass<Add, float, In>(device, "add", {});
  check_pass<Apply, float, In>(device, "apply", {0.3F});
  check_pass<ApplySum, float, In, In>(device, "apply_sum of 2", {0.3F});
  check_pass<ApplySum, float, In, In, In>(device, "apply_sum of 3", {0.3F});
  check_pass<ApplySum, float, In, In, In, In, In>(device, "apply_sum of 5", {0.3F});
  check_pass<Fill, float>(device, "fill", {7});
  check_pass<Scale, float>(device, "scale", {0.3F});
  check_pass<Sgd, float, In, In>(device, "sgd", {-0.1F, 0.01F});
  check_pass<Momentum, float, float, In, In>(device, "momentum", {0.9F, 0.01F, -0.1F});
  check_pass<Nesterov, float, float, In, In>(device, "nesterov", {0.9F, 0.01F, -0.1F});
  check_pass<Adam, float, float, float, In, In>(device, "adam",
                                                {0.9F, 0.999F, 0.1F, 0.001F, 0.01F, 1e-8F, -0.01F, 0.3F});
  check_pass<Lars, float, float, In, In>(device, "lars", {0.9F, 0.01F, 0.1F});
  check_pass<ToBf16, Half, In>(device, "to bf16", {});
  check_pass<FromBf16, float, const Half>(device, "from bf16", {});
  check_pass<ToFp16, Half, In>(device, "to fp16", {});
  check_pass<FromFp16, float, const Half>(device, "from fp16", {});
  return "every functor has the host's bits at all lengths and alignments";
}

std::string norms(Device& device) {
  DeviceMemory memory(device);
  HostMemory host;
  std::mt19937 random{5};
  std::normal_distribution<float> draw;
  std::vector<float> values((is_short ? 1U << 14U : 1U << 22U) + 5U);
  for (auto& each : values) each = draw(random);
  const auto array = memory.allocate(values.size());
  memory.write(array, values);
  for (const std::size_t first : {0U, 1U, 2U, 3U}) {
    const std::span<const float> part = array.subspan(first);
    const std::span<const float> same = std::span<const float>(values).subspan(first);
    const double got = memory.squared_norms(std::span(&part, 1)).front();
    const double wanted = host.squared_norms(std::span(&same, 1)).front();
    require(std::abs(got - wanted) <= 1e-12 * wanted, fmt::format("{} instead of {}", got, wanted));
    require(memory.squared_norms(std::span(&part, 1)).front() == got, "two runs give different bits");
  }
  return "squared norms agree with the host's to 1e-12 and repeat to the bit";
}

/// Seconds of one of `times` runs, the first ones not counted.
double each(Device& device, int times, const std::function<void()>& work) {
  for (int k = 0; k < 3; ++k) work();
  device.synchronize(DeviceStream::kCompute);
  return seconds([&] {
           for (int k = 0; k < times; ++k) work();
           device.synchronize(DeviceStream::kCompute);
         }) /
         times;
}

std::string apply(CudaDevice& device) {
  const auto w = device_array<float>(device, kParameters);
  const auto u = device_array<float>(device, kParameters);
  const auto stream = device.stream(DeviceStream::kCompute).get();
  const double bytes = static_cast<double>(kParameters * sizeof(float));
  const double copy_s = each(device, 50, [&] {
    FLUENTPS_CUDA(cudaMemcpyAsync(w.bytes(), u.bytes(), kParameters * sizeof(float), cudaMemcpyDeviceToDevice, stream));
  });
  const float* from = u.span().data();
  const double apply_s =
      each(device, 50, [&] { device.run(make_pass(elementwise::Apply{0.5F}, kParameters, w.span().data(), from)); });
  // A copy moves 2 arrays, an apply 3: reads w and u, writes w.
  const double copy_rate = 2 * bytes / copy_s * 1e-9;
  const double apply_rate = 3 * bytes / apply_s * 1e-9;
  const auto text = fmt::format("apply {:.0f} GB/s, copy {:.0f} GB/s: {:.0f} % (target {:.0f} %)", apply_rate,
                                copy_rate, 100 * apply_rate / copy_rate, 100 * kApplyTarget);
  require(apply_rate >= kApplyTarget * copy_rate, text);
  return text;
}

/// Chunks of 1 MiB through a ring of 4 into a shard, as a server takes them; beside it each stage alone.
std::string staging(Device& device) {
  constexpr std::int64_t kChunk = 1 << 18;
  constexpr std::uint32_t kRing = 4;
  constexpr std::uint32_t kChunks = kParameters / kChunk;
  constexpr auto kShard = static_cast<std::size_t>(kChunks) * kChunk;
  std::vector<float> weights(kShard);
  std::vector<float> inbox(static_cast<std::size_t>(kChunk) * kRing, 1.0F);
  const auto path = make_staged_path({.shard_elements = kShard,
                                      .chunk_elements = kChunk,
                                      .workers = 1,
                                      .ring = kRing,
                                      .weights = weights,
                                      .inbox = inbox},
                                     device);
  auto& memory = path->memory();
  const auto push = [&] {
    for (std::uint32_t k = 0; k < kChunks; ++k) {
      const auto slot = k % kRing;
      const auto values = path->bring_in(WorkerIndex{0}, slot, std::span(inbox).subspan(slot * kChunk, kChunk), kChunk);
      passes::apply(memory, path->weights().subspan(std::size_t{k} * kChunk, kChunk), values, 0.5F);
      path->used(WorkerIndex{0}, slot);
      if (k > 0) path->free_slot(WorkerIndex{0}, (k - 1) % kRing);
    }
    memory.finish();
  };
  const auto target = device_array<float>(device, kShard);
  const auto source = pinned_array<float>(device, kChunk);
  std::fill(source.span().begin(), source.span().end(), 0.0F);
  const auto copies = [&] {
    for (std::uint32_t k = 0; k < kChunks; ++k)
      device.copy_in(target.bytes() + std::size_t{k} * kChunk * sizeof(float), source.bytes(), kChunk * sizeof(float));
    device.synchronize(DeviceStream::kIn);
  };
  const auto applies = [&] {
    for (std::uint32_t k = 0; k < kChunks; ++k)
      passes::apply(memory, path->weights().subspan(std::size_t{k} * kChunk, kChunk),
                    target.span().subspan(std::size_t{k} * kChunk, kChunk), 0.5F);
    memory.finish();
  };
  push();
  copies();
  applies();
  const auto best = [](const std::function<void()>& work) {
    double least = seconds(work);
    for (int k = 0; k < 4; ++k) least = std::min(least, seconds(work));
    return least;
  };
  const double copy_s = best(copies), apply_s = best(applies), both_s = best(push);
  const double bytes = kShard * sizeof(float) * 1e-9;
  const double share = std::max(copy_s, apply_s) / both_s;
  const auto text = fmt::format("copy {:.1f} GB/s, apply {:.1f}, both {:.1f}: {:.0f} % of the slower (target {:.0f} %)",
                                bytes / copy_s, bytes / apply_s, bytes / both_s, 100 * share, 100 * kStagingTarget);
  require(share >= kStagingTarget, text);
  // 1 + 5 pushes of 0.5 * 1, and applies of zeros.
  path->publish();
  const float wanted = 0.5F * 6;
  require(std::all_of(weights.begin(), weights.end(), [&](float w) { return w == wanted; }),
          "the weights that come out are wrong");
  return text;
}

std::string nccl(Device& device) {
  NcclGroup group(NcclGroup::make_id(), 1, 0, device);
  DeviceMemory memory(device);
  const auto array = memory.allocate(1000);
  passes::fill(memory, array, 3);
  group.reduce_to(0, array);
  group.broadcast_from(0, array);
  group.synchronize();
  std::vector<float> values(array.size());
  memory.read(array, values);
  require(std::all_of(values.begin(), values.end(), [](float value) { return value == 3; }), "values have changed");
  return "reduce and broadcast with one rank";
}

struct Check {
  const char* name;
  std::function<std::string(CudaDevice&)> run;
};

void report(const Check& check, CudaDevice& device) {
  const auto line = [&](const char* outcome, const std::string& detail) {
    fmt::print("{}|{}|{}\n", check.name, outcome, detail);
  };
  try {
    line("passed", check.run(device));
  } catch (const Failure& failure) {
    line("failed", failure.why);
  } catch (const UsageError& error) {
    line("skipped", error.what());
  } catch (const std::exception& error) {
    line("failed", error.what());
  }
}

}  // namespace
}  // namespace fluentps

int main(int argc, char** argv) {
  using namespace fluentps;
  const std::vector<Check> checks = {
      {"kernels", kernels}, {"norms", norms}, {"apply", fluentps::apply}, {"staging", staging}, {"nccl", nccl}};
  std::vector<std::string> wanted(argv + 1, argv + argc);
  is_short = std::erase(wanted, "short") > 0;
  const auto facts = look_at_gpus(0);
  if (facts.devices == 0) {
    for (const auto& check : checks) fmt::print("{}|skipped|there is no GPU on this machine\n", check.name);
    return 0;
  }
  try {
    CudaDevice device(0);
    fmt::print("device|passed|{}\n", device.name());
    for (const auto& check : checks)
      if (wanted.empty() || std::find(wanted.begin(), wanted.end(), check.name) != wanted.end()) report(check, device);
  } catch (const std::exception& error) {
    fmt::print("device|failed|{}\n", error.what());
  }
  return 0;
}
