/// Reads a run's trace into memory: rank files, live or crashed ones too, or the merged run.h5.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/rows.hpp"
#include "trace/writer.hpp"

namespace fluentps::trace {

/// One rank's attributes and rows. A worker's tables are empty on a server and the other way round.
struct RankData {
  std::string name;       ///< "rank-0003"
  Attributes attributes;  ///< numbers as decimal text
  bool server = false;    ///< attribute role
  int rank = 0;
  std::uint32_t index = 0;  ///< attribute role_index
  bool done = false;        ///< the rank closed its trace; else it runs still, or crashed

  std::vector<IterationRow> iterations;
  std::vector<WorkerPullRow> worker_pulls;
  std::vector<EvaluationRow> evaluations;
  std::vector<PushRow> pushes;
  std::vector<ServerPullRow> server_pulls;
  std::vector<AdvanceRow> advances;
};

struct RunData {
  std::string path;                ///< what was read: a folder or a merged file
  Attributes attributes;           ///< of the run: merged file's root, else those of its first rank
  std::vector<RankData> ranks;     ///< by rank
  std::vector<std::string> notes;  ///< what was left out and why, one sentence each

  std::vector<const RankData*> servers() const;  ///< by index
  std::vector<const RankData*> workers() const;  ///< by index
};

/// `path`: the folder of a run or a merged file. In a folder run.h5 is taken where there is one and no rank file is
/// newer, else the rank files. With `tolerant`, an unreadable rank file becomes a note. Throws UsageError: not there,
/// no trace, damaged.
RunData load_run(const std::string& path, bool tolerant = false);

/// The rank files of a run's folder, by rank. Throws UsageError where there is no folder.
std::vector<std::string> rank_files(const std::string& dir);

}  // namespace fluentps::trace
