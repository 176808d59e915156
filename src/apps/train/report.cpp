#include "apps/train/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "net/mpi_error.hpp"

namespace fluentps::app {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

struct RankSummary {
  std::uint32_t is_server = 0;
  std::uint32_t index = 0;
  train::TrainerTotals worker;
  SessionStatistics server;
};
static_assert(std::is_trivially_copyable_v<RankSummary>, "it travels as bytes");

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string worker_row(std::size_t index, const train::TrainerTotals& t) {
  const double seconds = static_cast<double>(t.total_ns) * 1e-9;
  return fmt::format("  worker {:<4} {:>8} {:>9.1f} {:>8.1f}% {:>6.1f}% {:>6.1f}% {:>6.1f}% {:>10.1f}\n", index,
                     t.iterations, seconds > 0 ? static_cast<double>(t.iterations) / seconds : 0,
                     share(t.compute_ns, t.total_ns), share(t.push_ns, t.total_ns), share(t.wait_ns, t.total_ns),
                     share(t.pull_ns, t.total_ns), static_cast<double>(t.bytes) / kMiB);
}

std::string server_row(std::size_t index, const SessionStatistics& s) {
  return fmt::format("  server {:<4} {:>8} {:>8} {:>8} {:>8} {:>10.2f} {:>6} {:>10.1f}\n", index, s.pushes, s.pulls,
                     s.delayed_pulls, s.dropped_pushes, s.staleness_mean, s.staleness_max,
                     static_cast<double>(s.bytes) / kMiB);
}

}  // namespace

RunSummary gather_summary(const Session& session, const train::TrainerTotals& own, int root) {
  int rank = 0;
  int ranks = 0;
  FLUENTPS_MPI(MPI_Comm_rank(session.job(), &rank));
  FLUENTPS_MPI(MPI_Comm_size(session.job(), &ranks));
  const RankSummary mine{session.is_server() ? 1U : 0U, session.index(), own, session.statistics()};
  std::vector<RankSummary> all(rank == root ? static_cast<std::size_t>(ranks) : 0);
  FLUENTPS_MPI(MPI_Gather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine), MPI_BYTE, root, session.job()));
  RunSummary summary;
  summary.workers.resize(session.workers());
  summary.servers.resize(session.servers());
  for (const auto& each : all) {
    if (each.is_server != 0)
      summary.servers[each.index] = each.server;
    else
      summary.workers[each.index] = each.worker;
  }
  return summary;
}

std::string to_table(const RunSummary& summary, const std::optional<train::Evaluation>& final_evaluation,
                     const std::string& trace_path) {
  std::string text = "\n              iters      it/s   compute    push    wait    pull        MiB\n";
  constexpr std::size_t kListed = 16;
  for (std::size_t w = 0; w < std::min(summary.workers.size(), kListed); ++w) text += worker_row(w, summary.workers[w]);
  if (summary.workers.size() > kListed)
    text += fmt::format("  ... and {} more workers\n", summary.workers.size() - kListed);
  text += "             pushes    pulls     DPRs  dropped  staleness    max        MiB\n";
  for (std::size_t m = 0; m < std::min(summary.servers.size(), kListed); ++m) text += server_row(m, summary.servers[m]);
  if (summary.servers.size() > kListed)
    text += fmt::format("  ... and {} more servers\n", summary.servers.size() - kListed);
  Iteration skipped = 0;
  for (const auto& each : summary.workers) skipped += each.skipped;
  if (skipped > 0) text += fmt::format("  {} gradients were not finite and were skipped (--nonfinite skip)\n", skipped);
  if (final_evaluation) {
    text += fmt::format("  test loss {:.4f}", final_evaluation->loss);
    if (std::isfinite(final_evaluation->accuracy))
      text += fmt::format(", test accuracy {:.4f}", final_evaluation->accuracy);
    text += '\n';
  }
  if (!trace_path.empty()) text += fmt::format("  trace: {}\n", trace_path);
  return text;
}

}  // namespace fluentps::app
