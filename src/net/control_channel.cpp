#include "net/control_channel.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <exception>

#include "net/mpi_error.hpp"
#include "net/simulated.hpp"

namespace fluentps {
namespace {

constexpr int kTag = 1;
constexpr std::size_t kFirstSends = 16;
constexpr int kTestsPerClock = 16;

}  // namespace

ControlChannel::ControlChannel(MPI_Comm job, const std::vector<int>& peers, const Waiter& waiter, const Clock& clock)
    : comm_(Comm::duplicate(job)), rank_of_peer_(peers), waiter_(waiter), clock_(clock) {
  while (outgoing_.size() < kFirstSends) outgoing_.push_back(std::make_unique<Outgoing>());
  peer_of_rank_.resize(static_cast<std::size_t>(comm_.size()));
  for (std::size_t peer = 0; peer < peers.size(); ++peer)
    peer_of_rank_[static_cast<std::size_t>(peers[peer])] = static_cast<std::uint32_t>(peer);
  post_receive();
}

ControlChannel::~ControlChannel() {
  if (std::uncaught_exceptions() > 0) return;
  if (receive_request_ != MPI_REQUEST_NULL) {
    MPI_Cancel(&receive_request_);
    MPI_Wait(&receive_request_, MPI_STATUS_IGNORE);
  }
  for (auto& each : outgoing_)
    if (each->request != MPI_REQUEST_NULL) MPI_Wait(&each->request, MPI_STATUS_IGNORE);
}

void ControlChannel::post_receive() {
  FLUENTPS_MPI(MPI_Irecv(&incoming_, sizeof(Buffer), MPI_BYTE, MPI_ANY_SOURCE, kTag, comm_.get(), &receive_request_));
}

/// Sends complete in order almost always, so the oldest is tried first; the ring grows when all are under way.
ControlChannel::Outgoing& ControlChannel::free_outgoing() {
  auto& oldest = *outgoing_[oldest_];
  int done = 1;
  if (oldest.request != MPI_REQUEST_NULL) FLUENTPS_MPI(MPI_Test(&oldest.request, &done, MPI_STATUS_IGNORE));
  if (done == 0) {
    // Keep the order of age: the new place comes right before the oldest.
    outgoing_.insert(outgoing_.begin() + static_cast<std::ptrdiff_t>(oldest_), std::make_unique<Outgoing>());
  }
  auto& place = *outgoing_[oldest_];
  oldest_ = (oldest_ + 1) % outgoing_.size();
  return place;
}

void ControlChannel::send(std::uint32_t peer, const Header& header, std::span<const std::byte> payload) {
  assert(payload.size() <= kMaxInlineBytes);
  auto& place = free_outgoing();
  place.buffer.header = header;
  if (!payload.empty()) std::memcpy(place.buffer.payload, payload.data(), payload.size());
  const auto bytes = static_cast<int>(sizeof(Header) + payload.size());
  FLUENTPS_MPI(MPI_Isend(&place.buffer, bytes, MPI_BYTE, rank_of_peer_[peer], kTag, comm_.get(), &place.request));
}

bool ControlChannel::arrived(MPI_Status& status) {
  int done = 0;
  FLUENTPS_MPI(MPI_Test(&receive_request_, &done, &status));
  return done != 0;
}

bool ControlChannel::wait_for_arrival(std::int64_t deadline_ns, MPI_Status& status) {
  if (arrived(status)) return true;
  const std::int64_t begin_ns = clock_.now_ns();
  if (kSimulated && deadline_ns - begin_ns > kLookAround_ns / 2) {
    // Every test of a request that did not arrive would be an event of the simulator.
    FLUENTPS_MPI(MPI_Wait(&receive_request_, &status));
    return true;
  }
  std::int64_t now_ns = begin_ns;
  for (int tests = 1;; ++tests) {
    if (now_ns >= deadline_ns) return false;
    waiter_.pause(now_ns - begin_ns);
    if (arrived(status)) return true;
    if (tests % kTestsPerClock == 0 || !waiter_.spins(now_ns - begin_ns)) now_ns = clock_.now_ns();
  }
}

std::optional<Message> ControlChannel::receive(std::int64_t deadline_ns) {
  if (consumed_) {
    post_receive();
    consumed_ = false;
  }
  MPI_Status status;
  if (!wait_for_arrival(deadline_ns, status)) return std::nullopt;
  consumed_ = true;
  int bytes = 0;
  FLUENTPS_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
  if (bytes < static_cast<int>(sizeof(Header)))
    throw ProtocolError(fmt::format("rank {} sent a control message of {} bytes; at least {} were expected",
                                    status.MPI_SOURCE, bytes, sizeof(Header)));
  Message message;
  message.peer = peer_of_rank_[static_cast<std::size_t>(status.MPI_SOURCE)];
  message.header = incoming_.header;
  message.payload = {incoming_.payload, static_cast<std::size_t>(bytes) - sizeof(Header)};
  return message;
}

void ControlChannel::drain() {
  for (auto& each : outgoing_)
    if (each->request != MPI_REQUEST_NULL) FLUENTPS_MPI(MPI_Wait(&each->request, MPI_STATUS_IGNORE));
}

}  // namespace fluentps
