/// The paths to a shard on a device. No call here waits for a copy or a pass but free_slot and publish.
#include <algorithm>

#include "shard/shard_path.hpp"

namespace fluentps {
namespace {

/// Elements of the pieces in which weights are packed and copied out side by side: 1 MiB.
constexpr std::size_t kPieceElements = std::size_t{1} << 18;

/// Memory of the host that is page-locked while this lives, where that can be done.
class PinnedRange {
 public:
  PinnedRange(Device& device, std::span<float> range) : device_(device), bytes_(std::as_writable_bytes(range)) {
    pinned_ = !bytes_.empty() && device.pin(bytes_);
  }
  ~PinnedRange() {
    if (pinned_) device_.unpin(bytes_);
  }
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;

  bool pinned() const { return pinned_; }

 private:
  Device& device_;
  std::span<std::byte> bytes_;
  bool pinned_ = false;
};

/// What both paths hold: the device's memory and the events of every slot.
class DevicePath : public ShardPath {
 public:
  DevicePath(const ShardPathOptions& options, Device& device)
      : options_(options), device_(device), memory_(device), slots_(std::size_t{options.workers} * options.ring) {
    for (auto& slot : slots_) {
      slot.copied = device.make_event();
      slot.used = device.make_event();
    }
  }

  ~DevicePath() override { memory_.quiesce(); }

  ShardMemory& memory() override { return memory_; }
  bool passing() const override { return false; }
  std::uint32_t freed_later() const override { return options_.ring > 1 ? 1 : 0; }
  void used(WorkerIndex worker, std::uint32_t slot) override {
    device_.record(*at(worker, slot).used, DeviceStream::kCompute);
  }

 protected:
  struct Slot {
    std::span<float> values;  ///< on the device, allocated when first used
    std::span<float> packed;
    DeviceArray<float> bounce;                  ///< on the host, where the exposed slot is not page-locked
    std::unique_ptr<DeviceEvent> copied, used;  ///< values are on the device; the passes over them are done
  };

  Slot& at(WorkerIndex worker, std::uint32_t slot) { return slots_[std::size_t{worker.value} * options_.ring + slot]; }
  bool packed() const { return options_.wire != WireFormat::kFp32; }
  std::span<float> chunk(std::span<float>& memory, std::int64_t count) {
    if (memory.empty()) memory = memory_.allocate(static_cast<std::size_t>(options_.chunk_elements));
    return memory.first(static_cast<std::size_t>(count));
  }

  ShardPathOptions options_;
  Device& device_;
  DeviceMemory memory_;
  std::vector<Slot> slots_;
};

class StagedPath final : public DevicePath {
 public:
  StagedPath(const ShardPathOptions& options, Device& device)
      : DevicePath(options, device),
        inbox_(device, options.inbox),
        exposed_(device, options.weights),
        weights_(memory_.allocate(static_cast<std::size_t>(options.shard_elements))),
        wire_weights_(packed() ? memory_.allocate(options.weights.size()) : std::span<float>()),
        computed_(device.make_event()) {}
  ~StagedPath() override { memory_.quiesce(); }

  std::span<float> weights() override { return weights_; }

  std::span<const float> bring_in(WorkerIndex worker, std::uint32_t slot, std::span<const float> arrived,
                                  std::int64_t count) override {
    auto& s = at(worker, slot);
    const auto values = chunk(s.values, count);
    const auto target = packed() ? chunk(s.packed, static_cast<std::int64_t>(arrived.size())) : values;
    device_.wait(DeviceStream::kIn, *s.used);
    device_.copy_in(reinterpret_cast<std::byte*>(target.data()), page_locked(s, arrived), arrived.size_bytes());
    device_.record(*s.copied, DeviceStream::kIn);
    device_.wait(DeviceStream::kCompute, *s.copied);
    if (packed()) device_.run(unpack_pass(options_.wire, target, values));
    return values;
  }

  void free_slot(WorkerIndex worker, std::uint32_t slot) override {
    if (inbox_.pinned()) device_.synchronize(*at(worker, slot).copied);
  }

  /// Piece by piece: one is copied out while the next is packed.
  void publish() override {
    if (!exposed_.pinned()) {
      if (packed()) device_.run(pack_pass(options_.wire, weights_, wire_weights_));
      memory_.read(packed() ? wire_weights_ : weights_, options_.weights);
      return;
    }
    const auto ready = packed() ? wire_weights_ : weights_;
    for (std::size_t first = 0; first < weights_.size(); first += kPieceElements) {
      const auto values = weights_.subspan(first, std::min(kPieceElements, weights_.size() - first));
      const auto place = packed() ? first / 2 : first;
      const auto places = ready.subspan(
          place, static_cast<std::size_t>(wire_places(options_.wire, static_cast<std::int64_t>(values.size()))));
      if (packed()) device_.run(pack_pass(options_.wire, values, places));
      device_.record(*computed_, DeviceStream::kCompute);
      device_.wait(DeviceStream::kOut, *computed_);
      device_.copy_out(reinterpret_cast<std::byte*>(options_.weights.data() + place),
                       reinterpret_cast<const std::byte*>(places.data()), places.size_bytes());
    }
    device_.synchronize(DeviceStream::kOut);
  }

 private:
  /// A copy from memory that is not page-locked would make the host wait for all of it; through a bounce buffer the
  /// exposed slot is free at once.
  const std::byte* page_locked(Slot& slot, std::span<const float> arrived) {
    if (inbox_.pinned()) return reinterpret_cast<const std::byte*>(arrived.data());
    if (slot.bounce.span().empty())
      slot.bounce = pinned_array<float>(device_, static_cast<std::size_t>(options_.chunk_elements));
    device_.synchronize(*slot.copied);  // the copy before
    std::copy(arrived.begin(), arrived.end(), slot.bounce.span().begin());
    return slot.bounce.bytes();
  }

  PinnedRange inbox_;
  PinnedRange exposed_;
  std::span<float> weights_;
  std::span<float> wire_weights_;
  std::unique_ptr<DeviceEvent> computed_;
};

class DirectPath final : public DevicePath {
 public:
  DirectPath(const ShardPathOptions& options, Device& device)
      : DevicePath(options, device),
        weights_(packed() ? memory_.allocate(static_cast<std::size_t>(options.shard_elements)) : options.weights) {}

  std::span<float> weights() override { return weights_; }

  std::span<const float> bring_in(WorkerIndex worker, std::uint32_t slot, std::span<const float> arrived,
                                  std::int64_t count) override {
    device_.see_remote_writes();
    if (!packed()) return arrived;
    const auto values = chunk(at(worker, slot).values, count);
    device_.run(unpack_pass(options_.wire, arrived, values));
    return values;
  }

  void free_slot(WorkerIndex worker, std::uint32_t slot) override { device_.synchronize(*at(worker, slot).used); }

  void publish() override {
    if (packed()) device_.run(pack_pass(options_.wire, weights_, options_.weights));
    memory_.finish();
  }

 private:
  std::span<float> weights_;
};

}  // namespace

std::unique_ptr<ShardPath> make_staged_path(const ShardPathOptions& options, Device& device) {
  return std::make_unique<StagedPath>(options, device);
}

std::unique_ptr<ShardPath> make_direct_path(const ShardPathOptions& options, Device& device) {
  return std::make_unique<DirectPath>(options, device);
}

}  // namespace fluentps
