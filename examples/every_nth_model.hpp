/// A synchronization model of one's own: a barrier at every n-th iteration, no waiting in between.
#pragma once

#include <memory>
#include <string>

#include "fluentps/error.hpp"
#include "fluentps/sync_model.hpp"

// [model]
class EveryNth final : public fluentps::SyncModel {
 public:
  explicit EveryNth(fluentps::Iteration n) : n_(n) {}
  std::string spec() const override { return "every:n=" + std::to_string(n_); }
  /// Not asked where i < V, so a pull at a barrier waits for everybody.
  bool may_pull(const fluentps::SyncState&, fluentps::WorkerIndex, fluentps::Iteration i) const override {
    return (i + 1) % n_ != 0;
  }

 private:
  fluentps::Iteration n_;
};

inline std::unique_ptr<fluentps::SyncModel> make_every_nth(const fluentps::SyncArguments& arguments, std::uint32_t) {
  const auto n = arguments.find("n");
  if (arguments.size() != 1 || n == arguments.end() || std::atoi(n->second.c_str()) < 1)
    throw fluentps::UsageError("--sync: every needs a positive n and nothing else, write every:n=10");
  return std::make_unique<EveryNth>(std::atoi(n->second.c_str()));
}
// [model]
