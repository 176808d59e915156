#include <fmt/format.h>

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
        inbox_(roles.job.get(), roles.role == Role::kServer ? layout.inbox_elements() * kFloatBytes : 0, "inbox") {}

  std::span<float> weights() override {
    const auto memory = weights_.memory();
    return {reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)};
  }

  std::span<const float> receive_chunk(WorkerIndex worker, std::uint32_t slot, std::int64_t count) override {
    inbox_.sync();
    const auto at = static_cast<std::size_t>(slot_offset(worker, slot) * kFloatBytes);
    const auto memory = inbox_.memory().subspan(at, static_cast<std::size_t>(count * kFloatBytes));
    return {reinterpret_cast<const float*>(memory.data()), static_cast<std::size_t>(count)};
  }

  void offer_weights(WorkerIndex) override { weights_.sync(); }

  void put(ServerIndex server, std::uint32_t slot, std::int64_t offset, std::span<const float> values) override {
    const auto count = static_cast<std::int64_t>(values.size());
    if (slot >= layout_.ring || offset < 0 || count > layout_.chunk_elements - offset)
      throw RangeError(fmt::format("put of {} elements at {} of slot {} of server {} is outside of its {} slots of {}",
                                   count, offset, slot, server.value, layout_.ring, layout_.chunk_elements));
    inbox_.put(rank(server), (slot_offset(WorkerIndex{roles_.index}, slot) + offset) * kFloatBytes, std::as_bytes(values));
  }
  void complete_puts(ServerIndex server) override { inbox_.flush(rank(server)); }
  void finish_puts() override {}

  void get(ServerIndex server, std::int64_t offset, std::span<float> into) override {
    weights_.get(rank(server), offset * kFloatBytes, std::as_writable_bytes(into));
  }
  void complete_gets(ServerIndex server) override { weights_.flush(rank(server)); }

 private:
  static std::int64_t own_bytes(const DataLayout& layout, const Roles& roles) {
    return roles.role == Role::kServer ? layout.shard_elements[roles.index] * kFloatBytes : 0;
  }
  int rank(ServerIndex server) const { return roles_.rank_of_server.at(server.value); }
  std::int64_t slot_offset(WorkerIndex worker, std::uint32_t slot) const {
    return (std::int64_t{worker.value} * layout_.ring + slot) * layout_.chunk_elements;
  }

  const Roles& roles_;
  DataLayout layout_;
  Window weights_;
  Window inbox_;
};

}  // namespace

std::unique_ptr<Transport> make_rma_transport(const Roles& roles, const DataLayout& layout) {
  return std::make_unique<RmaTransport>(roles, layout);
}

}  // namespace fluentps
