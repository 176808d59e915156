/// Writes one rank's trace: an HDF5 file in SWMR mode, bounded buffers, timed flush. One writer per file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trace/rows.hpp"

namespace fluentps::trace {

/// Attributes of a file: name and value, written once at creation (docs/trace-format.md lists them).
using Attributes = std::vector<std::pair<std::string, std::string>>;

struct WriterOptions {
  std::string path;                       ///< of the new file; must not exist
  std::int64_t flush_ns = 2'000'000'000;  ///< rows older than this are on disk (0: every row at once)
  Attributes attributes;                  ///< strings
  std::int64_t clock_offset_ns = 0;       ///< this rank's clock minus rank 0's
};

class RankFile;  // the HDF5 side, private to the room

/// Rows of a worker. All calls by the rank that owns it; throws Hdf5Error (src/trace/hdf5_error.hpp) naming the path.
/// After a failed write the trace is closed: it holds what the last flush wrote, and nothing more can be added.
class WorkerTrace {
 public:
  explicit WorkerTrace(const WriterOptions& options);
  ~WorkerTrace();  ///< flushes and closes without the done mark; logs instead of throwing
  void add(const IterationRow& row);
  void add(const WorkerPullRow& row);
  void add(const EvaluationRow& row);
  /// Flushes when the oldest buffered row is older than flush_ns. Cheap; call once per iteration and when idle.
  void maybe_flush(std::int64_t now_ns);
  void flush();
  /// Sets the done mark (attribute `done` = 1) and closes.
  void close();

 private:
  std::unique_ptr<RankFile> file_;
};

/// Rows of a server.
class ServerTrace {
 public:
  explicit ServerTrace(const WriterOptions& options);
  ~ServerTrace();
  void add(const PushRow& row);
  void add(const ServerPullRow& row);
  void add(const AdvanceRow& row);
  void maybe_flush(std::int64_t now_ns);
  void flush();
  void close();

 private:
  std::unique_ptr<RankFile> file_;
};

}  // namespace fluentps::trace
