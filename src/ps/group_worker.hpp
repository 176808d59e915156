/// A worker that pushes and pulls as a member of a local group; knows no MPI.
///
///   member                                leader
///   kMeet{what, iteration}   ------->     from all members: the same of each
///                            <-------     kMet
///   reduce: the sum of all members' updates is on the leader, which pushes sum * G/N and pulls
///                            <-------     kPulled{staleness, delayed ...}
///   broadcast: the weights are on all
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fluentps/clock.hpp"
#include "fluentps/worker.hpp"
#include "net/local_group.hpp"
#include "ps/worker_client.hpp"
#include "shard/device.hpp"
#include "shard/shard_memory.hpp"
#include "trace/writer.hpp"

namespace fluentps {

struct GroupOptions {
  WorkerIndex index;
  std::uint32_t workers = 1;           ///< N
  std::uint32_t groups = 1;            ///< G
  std::vector<std::uint32_t> members;  ///< workers of this group, the leader first
  std::int64_t parameters = 0;
  Device* device = nullptr;  ///< buffers given may lie on it; outlives the worker; null: all lie on the host
  Iteration first_iteration = 0;
  std::function<void()> poll = {};  ///< called while waiting; may throw to end the run
  std::int64_t stall_ns = 30'000'000'000;
  std::int64_t abort_ns = 60'000'000'000;
};

class GroupWorker final : public Worker {
 public:
  /// References outlive the worker. `client`: of the group, on its leader; null on the others. `trace` may be null.
  GroupWorker(const GroupOptions& options, LocalGroup& group, WorkerClient* client, Clock& clock,
              trace::WorkerTrace* trace);

  WorkerIndex index() const override { return options_.index; }
  std::uint32_t workers() const override { return options_.workers; }
  std::int64_t parameters() const override { return options_.parameters; }
  Iteration iteration() const override { return next_iteration_; }
  void initialize(std::span<float> weights) override;
  void push(std::span<const float> update) override;
  void pull(std::span<float> weights) override;
  void push_pull(std::span<const float> update, std::span<float> weights) override;
  void set_lr(double lr) override;
  void request_stop() override;
  Iteration stop_at() const override { return stop_at_; }
  const Transfer& last_transfer() const override { return transfer_; }

  /// Of all members together.
  void leave();

 private:
  enum class Step : std::uint32_t { kInitialize, kPush, kPull, kPushPull, kLeave };
  static const char* name_of(Step step);

  bool leads() const { return client_ != nullptr; }
  void meet(Step step);
  void gather(Step step);
  void compare(const Message& message, Step step) const;
  void sum_up(std::span<const float> update);
  void place_sum(std::span<const float> update);
  void share(std::span<float> weights);
  void tell(const Transfer& exchanged);
  Message await(const std::string& what, const std::function<std::string()>& whom);
  std::string missing(const std::vector<bool>& here) const;

  GroupOptions options_;
  LocalGroup& group_;
  WorkerClient* client_;
  Clock& clock_;
  trace::WorkerTrace* trace_;
  std::unique_ptr<ShardMemory> memory_;  ///< where the sum lies: beside the updates
  std::span<float> sum_;                 ///< of the group's updates, on the leader
  Iteration next_iteration_;
  Iteration stop_at_ = kNever;
  bool stop_wanted_ = false;
  bool initialized_ = false;
  Transfer own_;       ///< times spent in the group
  Transfer transfer_;  ///< these, and the exchange with the servers
};

}  // namespace fluentps
