/// The data plane over MPI: one-sided windows (`rma`) or two-sided messages (`p2p`), same semantics.
///
///   server s exposes     weights: | shard of s, float32 |
///                        inbox:   | worker 0: slot 0 .. slot ring-1 | worker 1: ... |   chunk_elements float32 a slot
///   workers expose nothing, so no RMA target ever computes.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "net/message.hpp"
#include "net/roles.hpp"
#include "shard/device.hpp"

namespace fluentps {

enum class TransportKind : std::uint8_t { kAuto, kRma, kP2p };
TransportKind parse_transport(std::string_view text);  ///< throws UsageError
std::string_view to_string(TransportKind kind);

/// Sizes that all ranks agree on.
struct DataLayout {
  std::vector<std::int64_t> shard_elements;  ///< by server
  std::int64_t chunk_elements = 0;           ///< float32 in one slot
  std::uint32_t ring = 0;                    ///< slots per worker and server
  std::uint32_t workers = 0;
  /// A 64-bit key moves with every float32, as in the baseline that sends one key per parameter: 12 bytes per element
  /// pushed, 8 asked for and 12 pulled, 32 instead of 8.
  bool keys = false;

  /// float32 places that one slot takes: with keys, two more for each element.
  std::int64_t slot_elements() const { return chunk_elements * (keys ? 3 : 1); }
  std::int64_t inbox_elements() const { return slot_elements() * ring * workers; }
  std::int64_t weights_elements(std::uint32_t server) const { return shard_elements[server] * (keys ? 3 : 1); }
};

/// Both sides of the data plane; a rank uses the one of its role.
class Transport : public ServerData, public WorkerData {};

/// Collective over roles.job. Windows are freed by the destructor, collectively.
std::unique_ptr<Transport> make_rma_transport(const Roles& roles, const DataLayout& layout);
/// The same with the servers' windows on `device`, which outlives the transport; what workers put and get may lie on
/// theirs. weights() and received chunks are the device's memory.
std::unique_ptr<Transport> make_rma_transport(const Roles& roles, const DataLayout& layout, Device& device);
std::unique_ptr<Transport> make_p2p_transport(const Roles& roles, const DataLayout& layout);

/// What `auto` found out, in one sentence for the log and the trace.
struct TransportChoice {
  TransportKind kind = TransportKind::kRma;
  bool shared_memory = false;  ///< put and get are copies in memory of one node
  std::string reason;
};

/// Collective over roles.job: a window, a put, a get and a flush between every worker and every server on a few bytes.
/// Throws UsageError where `wanted` is kRma and it does not work; ends the process, exit code 2, where it hangs for 30
/// s.
TransportChoice choose_transport(const Roles& roles, TransportKind wanted);

}  // namespace fluentps
