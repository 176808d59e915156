/// A server on a fake network, and what its workers send.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fake_network.hpp"
#include "ps/server.hpp"

namespace fluentps::test {

inline constexpr std::int64_t kChunk = 16;

/// A server of `elements` parameters and what its workers send, with the slots counted as workers count them.
class Bench {
 public:
  Bench(const std::string& sync, std::uint32_t workers, std::int64_t elements, std::uint32_t ring = 4,
        Release release = Release::kLazy, const std::function<void(ServerOptions&)>& adjust = {},
        ShardMemory* memory = nullptr)
      : workers_(workers),
        elements_(elements),
        ring_(ring),
        network(elements, kChunk, ring, workers, memory),
        slots_(workers, 0) {
    ServerOptions options;
    options.chunk_elements = kChunk;
    options.ring = ring;
    options.controller.workers = workers;
    options.controller.release = release;
    if (adjust) adjust(options);
    server = std::make_unique<Server>(options, SyncPlan(sync, workers, 1), network, network, clock, nullptr);
  }

  std::uint32_t chunks() const { return static_cast<std::uint32_t>((elements_ + kChunk - 1) / kChunk); }

  /// `lr` goes with it.
  void send_chunk(std::uint32_t worker, MessageKind kind, Iteration i, std::uint32_t chunk, float value,
                  std::uint16_t last_flags = 0, std::uint16_t other_flags = 0) {
    const auto slot = slots_[worker]++ % ring_;
    std::fill_n(network.slot_begin(WorkerIndex{worker}, slot), kChunk, value);
    const bool last = chunk + 1 == chunks();
    Header header{.kind = kind,
                  .flags = static_cast<std::uint16_t>(last ? kLastChunk | last_flags : other_flags),
                  .slot = slot,
                  .chunk = chunk,
                  .iteration = i,
                  .lr = lr};
    receive(worker, header);
  }
  void push(std::uint32_t worker, Iteration i, float value, std::uint16_t last_flags = kWantPull) {
    for (std::uint32_t c = 0; c < chunks(); ++c) send_chunk(worker, MessageKind::kPush, i, c, value, last_flags);
  }
  void initialize(float value) {
    for (std::uint32_t c = 0; c < chunks(); ++c) send_chunk(0, MessageKind::kInit, 0, c, value);
    for (std::uint32_t w = 0; w < workers_; ++w) receive(w, {.kind = MessageKind::kPull, .iteration = -1});
    network.sent.clear();
  }
  void receive(std::uint32_t worker, const Header& header) {
    ++clock.now;
    server->handle({.peer = worker, .header = header, .payload = {}});
  }
  std::vector<Sent> grants(std::uint32_t worker) { return network.take(worker, MessageKind::kGrant); }
  /// Adds the credits sent since the last call, by worker.
  void collect(std::vector<std::uint32_t>& credits) {
    for (const auto& each : network.sent) credits[each.to] += each.header.credits;
    network.sent.clear();
  }
  float weight() { return network.weights()[0]; }

 private:
  std::uint32_t workers_;
  std::int64_t elements_;
  std::uint32_t ring_;

 public:
  double lr = 0;
  FakeClock clock;
  FakeServerNetwork network;
  std::unique_ptr<Server> server;

 private:
  std::vector<std::uint32_t> slots_;
};

}  // namespace fluentps::test
