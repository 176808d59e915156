#include "ps/device_group.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/nccl_group.hpp"
#include "shard/device_memory.hpp"

namespace fluentps {
namespace {

constexpr int kLeader = 0;

class DeviceGroup : public LocalGroup {
 public:
  DeviceGroup(std::unique_ptr<LocalGroup> host, Device& device) : host_(std::move(host)), device_(device) {}

  std::uint32_t member() const override { return host_->member(); }
  std::uint32_t size() const override { return host_->size(); }
  ControlPort& control() override { return host_->control(); }

  void reduce(std::span<const float> values, std::span<float> sum) override {
    if (device_.owns(values.data()))
      reduce_on_device(values, sum);
    else
      host_->reduce(values, sum);
  }
  void broadcast(std::span<float> values) override {
    if (device_.owns(values.data()))
      broadcast_on_device(values);
    else
      host_->broadcast(values);
  }

 protected:
  virtual void reduce_on_device(std::span<const float> values, std::span<float> sum) = 0;
  virtual void broadcast_on_device(std::span<float> values) = 0;
  bool leads() const { return member() == kLeader; }

  std::unique_ptr<LocalGroup> host_;
  Device& device_;
};

/// Between the devices themselves.
class NcclLocalGroup final : public DeviceGroup {
 public:
  NcclLocalGroup(std::unique_ptr<LocalGroup> host, Device& device)
      : DeviceGroup(std::move(host), device),
        memory_(device),
        nccl_(shared_id(), static_cast<int>(size()), static_cast<int>(member()), device) {}

 private:
  /// The leader's, which travels as the bits of floats.
  NcclGroup::Id shared_id() {
    NcclGroup::Id id{};
    if (leads()) id = NcclGroup::make_id();
    std::array<float, sizeof(NcclGroup::Id) / sizeof(float)> bits;
    std::memcpy(bits.data(), id.data(), id.size());
    host_->broadcast(bits);
    std::memcpy(id.data(), bits.data(), id.size());
    return id;
  }
  void reduce_on_device(std::span<const float> values, std::span<float> sum) override {
    if (leads()) {
      passes::store(memory_, sum, values);
      nccl_.reduce_to(kLeader, sum);
    } else {
      nccl_.reduce_to(kLeader, {const_cast<float*>(values.data()), values.size()});  // left as they are
    }
    nccl_.synchronize();  // before MPI touches memory of the device
  }
  void broadcast_on_device(std::span<float> values) override {
    nccl_.broadcast_from(kLeader, values);
    nccl_.synchronize();
  }

  DeviceMemory memory_;
  NcclGroup nccl_;
};

/// By way of the host.
class StagedLocalGroup final : public DeviceGroup {
 public:
  StagedLocalGroup(std::unique_ptr<LocalGroup> host, Device& device)
      : DeviceGroup(std::move(host), device), memory_(device) {}

 private:
  void reduce_on_device(std::span<const float> values, std::span<float> sum) override {
    own_.resize(values.size());
    sum_.resize(sum.size());
    memory_.read(values, own_);
    host_->reduce(own_, sum_);
    if (leads()) memory_.write(sum, sum_);
    memory_.finish();
  }
  void broadcast_on_device(std::span<float> values) override {
    own_.resize(values.size());
    if (leads()) memory_.read(values, own_);
    host_->broadcast(own_);
    if (!leads()) memory_.write(values, own_);
    memory_.finish();
  }

  DeviceMemory memory_;
  std::vector<float> own_, sum_;
};

}  // namespace

std::unique_ptr<LocalGroup> make_device_group(std::unique_ptr<LocalGroup> host, Device& device) {
  if (built_with_nccl()) return std::make_unique<NcclLocalGroup>(std::move(host), device);
  return std::make_unique<StagedLocalGroup>(std::move(host), device);
}

}  // namespace fluentps
