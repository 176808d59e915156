/// The HDF5 side of the writer: one file, its tables, their buffers. docs/trace-format.md has the crash-safety design.
///
///   table:  [ chunks on disk, full ][ chunk with the rows since ]      begin <= next <= end, one chunk at most
///                                    ^written..^buffered..^free
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/handle.hpp"
#include "trace/table_type.hpp"
#include "trace/writer.hpp"

namespace fluentps::trace {

/// Rows of one table that wait for the disk.
class TableBuffer {
 public:
  template <typename Row>
  static TableBuffer of(const std::string& path) {
    return {Table<Row>::kName, packed_type<Row>(path), packed_size<Row>(), Table<Row>::kChunkRows};
  }
  TableBuffer(std::string name, Handle type, std::size_t row_bytes, std::size_t chunk_rows);
  /// Makes the dataset; before the file goes into SWMR mode.
  void create(hid_t file, const std::string& path);

  bool full() const { return next_ == end_; }
  bool empty() const { return next_ == buffer_.data(); }
  /// Precondition: !full().
  template <typename Row>
  void add(const Row& row) {
    pack(row, next_);
    next_ += packed_size<Row>();
  }
  /// Gives the buffered rows to HDF5. Throws Hdf5Error; the rows then stay buffered.
  void write(const std::string& path);
  /// Takes no more rows: full for ever.
  void close();

 private:
  std::string name_;
  Handle type_;
  Handle dataset_;
  std::size_t row_bytes_;
  std::size_t chunk_rows_;
  std::vector<std::byte> buffer_;
  std::byte* next_;
  std::byte* end_;             ///< where the chunk being filled is full
  std::uint64_t written_ = 0;  ///< rows with HDF5
};

class RankFile {
 public:
  /// Creates the file with these tables and goes into SWMR mode. Throws Hdf5Error.
  RankFile(const WriterOptions& options, std::vector<TableBuffer> tables);
  /// Flushes and closes without the done mark; logs instead of throwing.
  ~RankFile();
  RankFile(const RankFile&) = delete;
  RankFile& operator=(const RankFile&) = delete;

  template <typename Row>
  void add(std::size_t table, const Row& row) {
    auto& buffer = tables_[table];
    if (buffer.full()) make_room();
    buffer.add(row);
    if (flush_ns_ == 0) flush();
  }
  void maybe_flush(std::int64_t now_ns);
  void flush();
  /// Flushes, sets the done mark and closes; add() then throws std::logic_error. Again: nothing.
  void close();

 private:
  static constexpr std::int64_t kNone = INT64_MIN;

  void create_tables(const WriterOptions& options);
  void hold_lock();
  void make_room();
  bool dirty() const;
  void abandon();  ///< closes after a failed write; the file stays as the last good flush left it
  void close_handles();

  std::string path_;
  std::int64_t flush_ns_;
  std::vector<TableBuffer> tables_;
  Handle file_;
  int lock_ = -1;                   ///< descriptor whose shared lock tells others that the writer lives
  std::int64_t last_look_ns_ = 0;   ///< of maybe_flush
  std::int64_t oldest_ns_ = kNone;  ///< no buffered row is older than this
};

}  // namespace fluentps::trace
