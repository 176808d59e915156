/// Proves from a trace that the run kept its synchronization contract. docs/trace-format.md, "What verify proves".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/reader.hpp"

namespace fluentps::trace {

/// One broken promise.
struct Violation {
  std::string rank;       ///< "rank-0003"
  std::string table;      ///< "pushes"
  std::uint64_t row = 0;  ///< from 0
  std::string text;
};

/// Staleness and delays as one server saw them.
struct ServerFigures {
  std::uint32_t index = 0;
  std::uint64_t pushes = 0, pulls = 0, advances = 0;
  std::uint64_t late = 0, dropped = 0, delayed = 0;
  double staleness_mean = 0;  ///< of the pushes
  std::uint32_t staleness_max = 0;
  double delay_mean_ns = 0;  ///< of the delayed pulls, request to answer
  std::uint64_t delay_max_ns = 0;
};

/// The same of one worker, over all servers.
struct WorkerFigures {
  std::uint32_t index = 0;
  std::uint64_t iterations = 0;
  std::uint64_t pulls = 0, delayed = 0;
  double staleness_mean = 0;
  std::uint32_t staleness_max = 0;
  double delay_mean_ns = 0;
  std::uint64_t delay_max_ns = 0;
};

struct Verification {
  std::vector<Violation> violations;  ///< the first kMostViolations
  std::uint64_t violation_count = 0;  ///< all
  std::vector<std::string> proved;    ///< per server and stretch of the plan: the condition that was checked
  std::vector<std::string> weak;      ///< what could be checked in part only, and why
  std::vector<ServerFigures> servers;
  std::vector<WorkerFigures> workers;

  static constexpr std::size_t kMostViolations = 1000;
  bool holds() const { return violation_count == 0; }
  void add(const RankData& rank, const char* table, std::uint64_t row, std::string text);
};

/// Checks a run that was read. The plan comes from the attributes sync, release, workers, servers, seed, coin, fastest
/// and join. Throws UsageError where those make no sense.
Verification verify(const RunData& run);

/// What the program prints; at most `most_lines` violations.
std::string to_text(const Verification& verification, std::size_t most_lines = 50);

}  // namespace fluentps::trace
