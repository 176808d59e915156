#include "net/transport.hpp"

#include <fmt/format.h>

#include <optional>

#include "fluentps/error.hpp"
#include "net/agree.hpp"
#include "net/mpi_error.hpp"
#include "net/watchdog.hpp"
#include "net/window.hpp"

namespace fluentps {
namespace {

/// One value from each worker in the server's window, read back by the worker: any rank that fails makes it unusable.
TransportChoice try_window(const Roles& roles) {
  const auto workers = roles.worker_count();
  const bool is_server = roles.role == Role::kServer;
  std::optional<Window> window;
  // A rank that cannot allocate fails all: allocation is collective and Open MPI returns the error everywhere.
  agree(roles.job.get(),
        [&] { window.emplace(roles.job.get(), is_server ? workers * std::int64_t{sizeof(double)} : 0, "self-test"); });
  agree(roles.job.get(), [&] {
    if (is_server) return;
    const std::int64_t at = roles.index * std::int64_t{sizeof(double)};
    for (const int server : roles.rank_of_server) {
      const double sent = 1.0 + roles.index;
      double received = 0;
      window->put(server, at, std::as_bytes(std::span(&sent, 1)));
      window->flush(server);
      window->get(server, at, std::as_writable_bytes(std::span(&received, 1)));
      window->flush(server);
      if (received != sent)
        throw RunError(fmt::format("a put of {} to rank {} was read back as {}", sent, server, received));
    }
  });
  return {.kind = TransportKind::kRma,
          .shared_memory = window->shared(),
          .reason = fmt::format("put, get and flush work between every worker and every server{}",
                                window->shared() ? ", in memory they share" : "")};
}

}  // namespace

TransportKind parse_transport(std::string_view text) {
  if (text == "auto") return TransportKind::kAuto;
  if (text == "rma") return TransportKind::kRma;
  if (text == "p2p") return TransportKind::kP2p;
  throw UsageError(fmt::format("unknown transport '{}'; use auto, rma or p2p", text));
}

std::string_view to_string(TransportKind kind) {
  switch (kind) {
    case TransportKind::kAuto:
      return "auto";
    case TransportKind::kRma:
      return "rma";
    case TransportKind::kP2p:
      return "p2p";
  }
  return "?";
}

TransportChoice choose_transport(const Roles& roles, TransportKind wanted) {
  if (wanted == TransportKind::kP2p) return {.kind = TransportKind::kP2p, .reason = "as asked"};
  try {
#ifndef FLUENTPS_SIMULATED
    const Watchdog watchdog("the self-test of one-sided communication", "--transport p2p");
#endif
    return try_window(roles);
  } catch (const RunError& error) {
    if (wanted == TransportKind::kAuto)
      return {.kind = TransportKind::kP2p,
              .reason = fmt::format("one-sided communication does not work here ({})", error.what())};
    throw UsageError(
        fmt::format("--transport rma does not work here ({}); use --transport auto, or enable a one-sided "
                    "component (mpirun --mca osc ucx --mca pml ucx, or --mca osc pt2pt)",
                    error.what()));
  }
}

}  // namespace fluentps
