/// A network in memory: what a server sends is recorded, what a worker puts lies in the inbox at once.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "fluentps/clock.hpp"
#include "net/message.hpp"
#include "shard/shard_memory.hpp"

namespace fluentps::test {

class FakeClock : public Clock {
 public:
  std::int64_t now_ns() const override { return now; }
  void sleep_ns(std::int64_t duration_ns) override { now += duration_ns; }
  std::int64_t now = 0;
};

struct Sent {
  std::uint32_t to;
  Header header;
  std::vector<float> payload;
};

/// The server's side.
class FakeServerNetwork : public ControlPort, public ServerData {
 public:
  /// `memory`: where shard and inbox lie, memory that the host can reach.
  FakeServerNetwork(std::int64_t shard, std::int64_t chunk_elements, std::uint32_t ring, std::uint32_t workers,
                    ShardMemory* memory = nullptr)
      : memory_(memory != nullptr ? *memory : own_memory_),
        shard_(memory_.allocate(static_cast<std::size_t>(shard))),
        chunk_(chunk_elements),
        ring_(ring),
        inbox_(memory_.allocate(static_cast<std::size_t>(chunk_elements * ring * workers))) {}

  void send(std::uint32_t peer, const Header& header, std::span<const std::byte> payload) override {
    Sent each{peer, header, {}};
    each.payload.resize(payload.size() / sizeof(float));
    if (!payload.empty()) std::memcpy(each.payload.data(), payload.data(), payload.size());
    // What a worker reads after this grant, were it to read at once.
    if (header.kind == MessageKind::kGrant && payload.empty()) each.payload.assign(shard_.begin(), shard_.end());
    sent.push_back(std::move(each));
  }
  std::optional<Message> receive(std::int64_t) override { return std::nullopt; }

  std::span<float> weights() override { return shard_; }
  std::span<float> inbox() override { return inbox_; }
  std::span<const float> receive_chunk(WorkerIndex worker, std::uint32_t slot, std::int64_t count) override {
    return {slot_begin(worker, slot), static_cast<std::size_t>(count)};
  }
  void offer_weights(WorkerIndex worker, std::int64_t first, std::int64_t count) override {
    offered.push_back({worker.value, first, count});
  }

  float* slot_begin(WorkerIndex worker, std::uint32_t slot) {
    return inbox_.data() + (static_cast<std::int64_t>(worker.value) * ring_ + slot) * chunk_;
  }

  /// Messages to this worker of this kind since the last call.
  std::vector<Sent> take(std::uint32_t worker, MessageKind kind) {
    std::vector<Sent> found;
    std::vector<Sent> rest;
    for (auto& each : sent) (each.to == worker && each.header.kind == kind ? found : rest).push_back(each);
    sent = rest;
    return found;
  }

  struct Offer {
    std::uint32_t worker;
    std::int64_t first, count;
  };
  std::vector<Sent> sent;
  std::vector<Offer> offered;

 private:
  HostMemory own_memory_;
  ShardMemory& memory_;
  std::span<float> shard_;
  std::int64_t chunk_;
  std::uint32_t ring_;
  std::span<float> inbox_;
};

}  // namespace fluentps::test
