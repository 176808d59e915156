/// A trace file opened for reading, whatever its writer's fate: closed, still writing, or killed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/attributes.hpp"
#include "trace/table_type.hpp"

namespace fluentps::trace {

/// Throws UsageError: not there, not HDF5, damaged, or its writer died before the file was ready.
class SourceFile {
 public:
  explicit SourceFile(const std::string& path);
  hid_t get() const { return file_.get(); }
  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::string path_;
  std::uint64_t bytes_ = 0;
  Handle file_;
};

/// A dataset that holds rows, checked: one dimension, the fields wanted, and no more rows than the file has bytes for.
class SourceTable {
 public:
  /// Missing where `optional`: no rows. Throws UsageError naming file and table.
  SourceTable(const SourceFile& file, hid_t group, const std::string& name, std::size_t row_bytes,
              const std::vector<std::string>& fields);
  std::uint64_t rows() const { return rows_; }
  /// Reads `count` rows from `first` on into `packed` (count x row bytes). first + count <= rows().
  void read(std::uint64_t first, std::uint64_t count, hid_t type, std::byte* packed) const;

 private:
  void check_type(std::size_t row_bytes, const std::vector<std::string>& fields) const;
  void check_rows(std::uint64_t file_bytes) const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::string path_;
  std::string name_;
  Handle dataset_;
  std::uint64_t rows_ = 0;
};

/// Calls consume(rows) for blocks of rows in order and returns their number. Rows that were never written end the table:
/// `cut` then says how many there were.
template <typename Row, typename Consume>
std::uint64_t read_table(const SourceFile& file, hid_t group, std::uint64_t& cut, const Consume& consume) {
  constexpr std::uint64_t kBlockRows = 65536;
  std::vector<std::string> names;
  for_each_field<Row>([&](const auto& field) { names.emplace_back(field.name); });
  const SourceTable table(file, group, Table<Row>::kName, packed_size<Row>(), names);
  const auto type = packed_type<Row>(file.path());
  std::vector<std::byte> packed(static_cast<std::size_t>(std::min(kBlockRows, table.rows())) * packed_size<Row>());
  std::vector<Row> rows;
  for (std::uint64_t first = 0; first < table.rows(); first += kBlockRows) {
    const auto count = std::min(kBlockRows, table.rows() - first);
    table.read(first, count, type.get(), packed.data());
    rows.clear();
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto* from = packed.data() + i * packed_size<Row>();
      if (unwritten<Row>(from)) {
        cut = table.rows() - first - i;
        consume(rows);
        return first + i;
      }
      rows.push_back(unpack<Row>(from));
    }
    consume(rows);
  }
  cut = 0;
  return table.rows();
}

}  // namespace fluentps::trace
