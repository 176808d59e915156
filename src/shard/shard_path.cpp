/// The path on the host, and what the paths to devices share.
#include "shard/shard_path.hpp"

namespace fluentps {
namespace {

class HostPath final : public ShardPath {
 public:
  explicit HostPath(const ShardPathOptions& options)
      : options_(options),
        weights_(passes_through() ? options.weights
                                  : memory_.allocate(static_cast<std::size_t>(options.shard_elements))) {}

  ShardMemory& memory() override { return memory_; }
  std::span<float> weights() override { return weights_; }
  std::span<const float> bring_in(WorkerIndex, std::uint32_t, std::span<const float> arrived,
                                  std::int64_t count) override {
    if (passes_through()) return arrived;
    received_.resize(static_cast<std::size_t>(count));
    unpack(options_.wire, arrived, received_);
    return received_;
  }
  bool passing() const override { return !passes_through(); }
  void used(WorkerIndex, std::uint32_t) override {}
  void free_slot(WorkerIndex, std::uint32_t) override {}
  std::uint32_t freed_later() const override { return 0; }
  void publish() override {
    if (!passes_through()) pack(options_.wire, weights_, options_.weights);
  }

 private:
  bool passes_through() const { return options_.wire == WireFormat::kFp32; }

  ShardPathOptions options_;
  HostMemory memory_;
  std::span<float> weights_;
  std::vector<float> received_;  ///< an unpacked chunk
};

}  // namespace

Pass pack_pass(WireFormat wire, std::span<const float> values, std::span<float> places) {
  auto* halves = reinterpret_cast<Half*>(places.data());
  if (wire == WireFormat::kBf16) return make_pass(elementwise::ToBf16{}, values.size(), halves, values.data());
  return make_pass(elementwise::ToFp16{}, values.size(), halves, values.data());
}

Pass unpack_pass(WireFormat wire, std::span<const float> places, std::span<float> values) {
  const auto* halves = reinterpret_cast<const Half*>(places.data());
  if (wire == WireFormat::kBf16) return make_pass(elementwise::FromBf16{}, values.size(), values.data(), halves);
  return make_pass(elementwise::FromFp16{}, values.size(), values.data(), halves);
}

std::unique_ptr<ShardPath> make_host_path(const ShardPathOptions& options) {
  return std::make_unique<HostPath>(options);
}

}  // namespace fluentps
