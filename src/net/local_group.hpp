/// What the members of a local group do among themselves: small messages, a sum, a broadcast. Member 0 leads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "fluentps/clock.hpp"
#include "net/comm.hpp"
#include "net/message.hpp"
#include "net/waiter.hpp"

namespace fluentps {

class LocalGroup {
 public:
  virtual ~LocalGroup() = default;
  virtual std::uint32_t member() const = 0;
  virtual std::uint32_t size() const = 0;
  /// Between the members; the peers are members.
  virtual ControlPort& control() = 0;
  /// Collective, called when all members are about to: every member's `values` added up in `sum` on the leader;
  /// elsewhere `sum` is empty. Any number of float32, the same on all. Buffers may be changed when it returns.
  virtual void reduce(std::span<const float> values, std::span<float> sum) = 0;
  /// Collective, called when all members are about to: the leader's `values` on all.
  virtual void broadcast(std::span<float> values) = 0;
};

/// Over MPI's collectives, host memory. Collective over `group`, whose rank 0 leads; `clock` outlives it.
std::unique_ptr<LocalGroup> make_mpi_group(Comm group, const Waiter& waiter, const Clock& clock);

}  // namespace fluentps
