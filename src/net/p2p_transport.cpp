/// Two-sided data plane, for fabrics without usable RMA. The control message that announces a chunk or a grant is sent
/// on its own communicator, so the peer knows what to receive; messages of one pair and tag stay in order.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "net/mpi_error.hpp"
#include "net/transport.hpp"
#include "net/window.hpp"

namespace fluentps {
namespace {

constexpr int kPushTag = 2;
constexpr int kPullTag = 3;
/// Elements of one message: 256 MiB, far below INT_MAX bytes.
constexpr std::int64_t kLargestMessage = std::int64_t{1} << 26;

class P2pTransport final : public Transport {
 public:
  P2pTransport(const Roles& roles, const DataLayout& layout)
      : roles_(roles), layout_(layout), comm_(Comm::duplicate(roles.job.get())) {
    if (roles.role == Role::kServer) {
      weights_.resize(static_cast<std::size_t>(layout.shard_elements[roles.index]));
      inbox_.resize(static_cast<std::size_t>(layout.inbox_elements()));
      offers_.resize(layout.workers);
    } else {
      gets_.resize(roles.server_count());
      puts_.resize(roles.server_count());
    }
  }
  ~P2pTransport() override {
    if (std::uncaught_exceptions() > 0) return;
    for (auto& each : offers_)
      if (!each.empty()) MPI_Waitall(static_cast<int>(each.size()), each.data(), MPI_STATUSES_IGNORE);
  }

  std::span<float> weights() override { return weights_; }
  std::span<float> inbox() override { return inbox_; }

  /// The pieces of a chunk arrive as messages in the order in which they lie in it.
  std::span<const float> receive_chunk(WorkerIndex worker, std::uint32_t slot, std::int64_t count) override {
    float* const chunk = inbox_.data() + (std::int64_t{worker.value} * layout_.ring + slot) * layout_.chunk_elements;
    for (std::int64_t at = 0; at < count;) {
      MPI_Status status;
      int received = 0;
      FLUENTPS_MPI(MPI_Recv(chunk + at, static_cast<int>(count - at), MPI_FLOAT, roles_.rank_of_worker[worker.value],
                            kPushTag, comm_.get(), &status));
      FLUENTPS_MPI(MPI_Get_count(&status, MPI_FLOAT, &received));
      at += received;
    }
    return {chunk, static_cast<std::size_t>(count)};
  }

  /// The messages of an offer are cut at kLargestMessage here and by get.
  void offer_weights(WorkerIndex worker, std::int64_t first, std::int64_t count) override {
    auto& requests = offers_[worker.value];
    forget_finished(requests);
    for (const auto end = first + count; first < end; first += kLargestMessage) {
      requests.push_back(MPI_REQUEST_NULL);
      FLUENTPS_MPI(MPI_Isend(weights_.data() + first, static_cast<int>(std::min(kLargestMessage, end - first)),
                             MPI_FLOAT, roles_.rank_of_worker[worker.value], kPullTag, comm_.get(), &requests.back()));
    }
  }

  void put(ServerIndex server, std::uint32_t slot, std::int64_t offset, std::span<const float> values) override {
    const auto count = static_cast<std::int64_t>(values.size());
    if (slot >= layout_.ring || offset < 0 || count > layout_.chunk_elements - offset)
      throw RangeError(fmt::format("put of {} elements at {} of slot {} of server {} is outside of its {} slots of {}",
                                   count, offset, slot, server.value, layout_.ring, layout_.chunk_elements));
    if (count == 0) return;
    auto& requests = puts_[server.value];
    requests.push_back(MPI_REQUEST_NULL);
    FLUENTPS_MPI(MPI_Isend(values.data(), static_cast<int>(count), MPI_FLOAT, rank(server), kPushTag, comm_.get(),
                           &requests.back()));
  }
  void complete_puts(ServerIndex) override {}
  bool puts_finished() override {
    bool finished = true;
    for (auto& each : puts_) finished = forget_finished(each) && finished;
    return finished;
  }

  void get(ServerIndex server, std::int64_t offset, std::span<const std::span<float>> parts) override {
    std::int64_t count = 0;
    for (const auto& part : parts) count += static_cast<std::int64_t>(part.size());
    const auto shard = layout_.shard_elements[server.value];
    if (offset < 0 || offset > shard || count > shard - offset)
      throw RangeError(fmt::format("get of {} elements at {} of server {} is outside of its shard of {}", count, offset,
                                   server.value, shard));
    std::vector<std::span<float>> message;
    auto room = static_cast<std::size_t>(kLargestMessage);
    for (auto part : parts)
      while (!part.empty()) {
        message.push_back(part.first(std::min(room, part.size())));
        part = part.subspan(message.back().size());
        room -= message.back().size();
        if (room > 0) continue;
        receive(server, std::exchange(message, {}));
        room = static_cast<std::size_t>(kLargestMessage);
      }
    if (!message.empty()) receive(server, message);
  }

  void complete_gets(ServerIndex server) override { wait_all(gets_[server.value]); }

 private:
  static void wait_all(std::vector<MPI_Request>& requests) {
    if (!requests.empty())
      FLUENTPS_MPI(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    requests.clear();
  }

  /// Whether all have ended.
  static bool forget_finished(std::vector<MPI_Request>& requests) {
    int all = 1;
    if (!requests.empty())
      FLUENTPS_MPI(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all, MPI_STATUSES_IGNORE));
    if (all != 0) requests.clear();
    return all != 0;
  }

  int rank(ServerIndex server) const { return roles_.rank_of_server.at(server.value); }

  /// Starts receiving one message into all these parts.
  void receive(ServerIndex server, const std::vector<std::span<float>>& parts) {
    auto& requests = gets_[server.value];
    requests.push_back(MPI_REQUEST_NULL);
    if (parts.size() == 1) {
      FLUENTPS_MPI(MPI_Irecv(parts[0].data(), static_cast<int>(parts[0].size()), MPI_FLOAT, rank(server), kPullTag,
                             comm_.get(), &requests.back()));
      return;
    }
    std::vector<int> lengths;
    std::vector<MPI_Aint> addresses;
    for (const auto& part : parts) {
      lengths.push_back(static_cast<int>(part.size()));
      FLUENTPS_MPI(MPI_Get_address(part.data(), &addresses.emplace_back()));
    }
    MPI_Datatype scattered = MPI_DATATYPE_NULL;
    FLUENTPS_MPI(MPI_Type_create_hindexed(static_cast<int>(parts.size()), lengths.data(), addresses.data(), MPI_FLOAT,
                                          &scattered));
    FLUENTPS_MPI(MPI_Type_commit(&scattered));
    FLUENTPS_MPI(MPI_Irecv(MPI_BOTTOM, 1, scattered, rank(server), kPullTag, comm_.get(), &requests.back()));
    FLUENTPS_MPI(MPI_Type_free(&scattered));
  }

  const Roles& roles_;
  DataLayout layout_;
  Comm comm_;
  std::vector<float> weights_;
  std::vector<float> inbox_;
  std::vector<std::vector<MPI_Request>> offers_;  ///< of a server, by worker
  std::vector<std::vector<MPI_Request>> puts_;    ///< of a worker, by server
  std::vector<std::vector<MPI_Request>> gets_;    ///< of a worker, by server
};

}  // namespace

std::unique_ptr<Transport> make_p2p_transport(const Roles& roles, const DataLayout& layout) {
  return std::make_unique<P2pTransport>(roles, layout);
}

}  // namespace fluentps
