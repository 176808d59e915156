#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "net/mpi_error.hpp"
#include "net/transport.hpp"
#include "net/window.hpp"

namespace fluentps {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

class RmaTransport final : public Transport {
 public:
  RmaTransport(const Roles& roles, const DataLayout& layout)
      : roles_(roles),
        layout_(layout),
        weights_(roles.job.get(), own_bytes(layout, roles), "weights"),
        inbox_(roles.job.get(), inbox_bytes(layout, roles), "inbox") {
    if (layout.keys && roles.role == Role::kWorker)
      keys_.resize(
          static_cast<std::size_t>(*std::max_element(layout.shard_elements.begin(), layout.shard_elements.end())));
  }

  RmaTransport(const Roles& roles, const DataLayout& layout, Device& device)
      : roles_(roles),
        layout_(layout),
        weights_on_device_(device_array<std::byte>(device, static_cast<std::size_t>(own_bytes(layout, roles)))),
        inbox_on_device_(device_array<std::byte>(device, static_cast<std::size_t>(inbox_bytes(layout, roles)))),
        weights_(roles.job.get(), weights_on_device_.span(), "weights"),
        inbox_(roles.job.get(), inbox_on_device_.span(), "inbox") {}

  std::span<float> weights() override {
    const auto memory = weights_.memory();
    const auto shard = roles_.role == Role::kServer ? layout_.shard_elements[roles_.index] : 0;
    return {reinterpret_cast<float*>(memory.data()), static_cast<std::size_t>(shard)};
  }

  std::span<float> inbox() override {
    const auto memory = inbox_.memory();
    return {reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)};
  }

  std::span<const float> receive_chunk(WorkerIndex worker, std::uint32_t slot, std::int64_t count) override {
    inbox_.sync();
    const auto at = static_cast<std::size_t>(slot_offset(worker, slot) * kFloatBytes);
    const auto memory = inbox_.memory().subspan(at, static_cast<std::size_t>(count * kFloatBytes));
    return {reinterpret_cast<const float*>(memory.data()), static_cast<std::size_t>(count)};
  }

  void offer_weights(WorkerIndex, std::int64_t, std::int64_t) override { weights_.sync(); }

  void put(ServerIndex server, std::uint32_t slot, std::int64_t offset, std::span<const float> values) override {
    const auto count = static_cast<std::int64_t>(values.size());
    if (slot >= layout_.ring || offset < 0 || count > layout_.chunk_elements - offset)
      throw RangeError(fmt::format("put of {} elements at {} of slot {} of server {} is outside of its {} slots of {}",
                                   count, offset, slot, server.value, layout_.ring, layout_.chunk_elements));
    const auto slot_begin = slot_offset(WorkerIndex{roles_.index}, slot);
    inbox_.put(rank(server), (slot_begin + offset) * kFloatBytes, std::as_bytes(values));
    if (layout_.keys)
      inbox_.put(rank(server), (slot_begin + layout_.chunk_elements + 2 * offset) * kFloatBytes,
                 std::as_bytes(std::span(keys_).first(values.size())));
  }
  void complete_puts(ServerIndex server) override { inbox_.flush(rank(server)); }
  bool puts_finished() override { return true; }

  /// The own ring, which is empty while a worker asks, takes the keys of a shard of any size, slot after slot.
  void send_keys(ServerIndex server) override {
    if (!layout_.keys) return;
    for (std::int64_t at = 0; at < layout_.shard_elements[server.value]; at += layout_.chunk_elements) {
      const auto count = std::min(layout_.chunk_elements, layout_.shard_elements[server.value] - at);
      const auto slot = static_cast<std::uint32_t>(at / layout_.chunk_elements % layout_.ring);
      inbox_.put(rank(server), (slot_offset(WorkerIndex{roles_.index}, slot) + layout_.chunk_elements) * kFloatBytes,
                 std::as_bytes(std::span(keys_).first(static_cast<std::size_t>(count))));
    }
    inbox_.flush(rank(server));
  }

  void get(ServerIndex server, std::int64_t offset, std::span<const std::span<float>> parts) override {
    for (const auto& part : parts) {
      weights_.get(rank(server), offset * kFloatBytes, std::as_writable_bytes(part));
      if (layout_.keys)
        weights_.get(rank(server), (layout_.shard_elements[server.value] + 2 * offset) * kFloatBytes,
                     std::as_writable_bytes(std::span(keys_).first(part.size())));
      offset += static_cast<std::int64_t>(part.size());
    }
  }
  void complete_gets(ServerIndex server) override { weights_.flush(rank(server)); }

 private:
  static std::int64_t own_bytes(const DataLayout& layout, const Roles& roles) {
    return roles.role == Role::kServer ? layout.weights_elements(roles.index) * kFloatBytes : 0;
  }
  static std::int64_t inbox_bytes(const DataLayout& layout, const Roles& roles) {
    return roles.role == Role::kServer ? layout.inbox_elements() * kFloatBytes : 0;
  }
  int rank(ServerIndex server) const { return roles_.rank_of_server.at(server.value); }
  std::int64_t slot_offset(WorkerIndex worker, std::uint32_t slot) const {
    return (std::int64_t{worker.value} * layout_.ring + slot) * layout_.slot_elements();
  }

  const Roles& roles_;
  DataLayout layout_;
  DeviceArray<std::byte> weights_on_device_;  ///< empty where the windows are the host's
  DeviceArray<std::byte> inbox_on_device_;
  Window weights_;
  Window inbox_;
  std::vector<std::uint64_t> keys_;  ///< what moves as keys; their values mean nothing here
};

}  // namespace

std::unique_ptr<Transport> make_rma_transport(const Roles& roles, const DataLayout& layout) {
  return std::make_unique<RmaTransport>(roles, layout);
}

std::unique_ptr<Transport> make_rma_transport(const Roles& roles, const DataLayout& layout, Device& device) {
  return std::make_unique<RmaTransport>(roles, layout, device);
}

}  // namespace fluentps
