/// Two-sided data plane, for fabrics without usable RMA. The control message that announces a chunk or a grant is sent
/// on its own communicator, so the peer knows what to receive; messages of one pair and tag stay in order.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
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

  void offer_weights(WorkerIndex worker) override {
    auto& requests = offers_[worker.value];
    // The worker that asks again has received the last answer, so this returns at once.
    wait_all(requests);
    const auto count = static_cast<std::int64_t>(weights_.size());
    for (std::int64_t at = 0; at < count; at += kLargestMessage) {
      requests.push_back(MPI_REQUEST_NULL);
      FLUENTPS_MPI(MPI_Isend(weights_.data() + at, static_cast<int>(std::min(kLargestMessage, count - at)), MPI_FLOAT,
                             roles_.rank_of_worker[worker.value], kPullTag, comm_.get(), &requests.back()));
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
  void finish_puts() override {
    for (auto& each : puts_) wait_all(each);
  }

  /// The server's messages need not be cut as the gets are, so the shard is received as a whole where they differ.
  void get(ServerIndex server, std::int64_t offset, std::span<float> into) override {
    const auto shard = layout_.shard_elements[server.value];
    const auto count = static_cast<std::int64_t>(into.size());
    if (offset < 0 || offset > shard || count > shard - offset)
      throw RangeError(fmt::format("get of {} elements at {} of server {} is outside of its shard of {}", count, offset,
                                   server.value, shard));
    gets_[server.value].push_back({offset, into});
  }

  void complete_gets(ServerIndex server) override {
    auto gets = std::move(gets_[server.value]);
    gets_[server.value].clear();
    const auto shard = layout_.shard_elements[server.value];
    if (gets.size() == 1 && static_cast<std::int64_t>(gets[0].into.size()) == shard) {
      receive(server, gets[0].into);
      return;
    }
    staging_.resize(static_cast<std::size_t>(shard));
    receive(server, staging_);
    for (const auto& each : gets) std::copy_n(staging_.begin() + each.offset, each.into.size(), each.into.begin());
  }

 private:
  struct PendingGet {
    std::int64_t offset;
    std::span<float> into;
  };

  static void wait_all(std::vector<MPI_Request>& requests) {
    if (!requests.empty())
      FLUENTPS_MPI(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    requests.clear();
  }
  int rank(ServerIndex server) const { return roles_.rank_of_server.at(server.value); }

  void receive(ServerIndex server, std::span<float> into) {
    const auto count = static_cast<std::int64_t>(into.size());
    for (std::int64_t at = 0; at < count; at += kLargestMessage)
      FLUENTPS_MPI(MPI_Recv(into.data() + at, static_cast<int>(std::min(kLargestMessage, count - at)), MPI_FLOAT,
                            rank(server), kPullTag, comm_.get(), MPI_STATUS_IGNORE));
  }

  const Roles& roles_;
  DataLayout layout_;
  Comm comm_;
  std::vector<float> weights_;
  std::vector<float> inbox_;
  std::vector<float> staging_;
  std::vector<std::vector<MPI_Request>> offers_;  ///< of a server, by worker
  std::vector<std::vector<MPI_Request>> puts_;    ///< of a worker, by server
  std::vector<std::vector<PendingGet>> gets_;     ///< of a worker, by server
};

}  // namespace

std::unique_ptr<Transport> make_p2p_transport(const Roles& roles, const DataLayout& layout) {
  return std::make_unique<P2pTransport>(roles, layout);
}

}  // namespace fluentps
