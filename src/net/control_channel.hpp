/// The two-sided control plane over MPI.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fluentps/clock.hpp"
#include "net/comm.hpp"
#include "net/message.hpp"
#include "net/waiter.hpp"

namespace fluentps {

class ControlChannel : public ControlPort {
 public:
  /// Collective over `job`. `peers`: job ranks of the other role, by index. `clock` outlives the channel.
  ControlChannel(MPI_Comm job, const std::vector<int>& peers, const Waiter& waiter, const Clock& clock);
  ~ControlChannel() override;
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  void send(std::uint32_t peer, const Header& header, std::span<const std::byte> payload) override;
  std::optional<Message> receive(std::int64_t deadline_ns) override;

  /// Waits until every message sent has left.
  void drain();

 private:
  struct Buffer {
    Header header;
    std::byte payload[kMaxInlineBytes];
  };
  struct Outgoing {
    MPI_Request request = MPI_REQUEST_NULL;
    Buffer buffer;
  };

  void post_receive();
  bool arrived(MPI_Status& status);
  bool wait_for_arrival(std::int64_t deadline_ns, MPI_Status& status);
  Outgoing& free_outgoing();

  Comm comm_;
  std::vector<int> rank_of_peer_;
  std::vector<std::uint32_t> peer_of_rank_;
  Waiter waiter_;
  const Clock& clock_;
  MPI_Request receive_request_ = MPI_REQUEST_NULL;
  Buffer incoming_{};
  bool consumed_ = false;  ///< the last message has been handed out; its buffer is to be posted again
  std::vector<std::unique_ptr<Outgoing>> outgoing_;  ///< a ring: `oldest_` is the send started first
  std::size_t oldest_ = 0;
};

}  // namespace fluentps
