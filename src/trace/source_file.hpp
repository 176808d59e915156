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
  /// Size now; the file of a writer at work grows.
  std::uint64_t bytes() const;

 private:
  std::string path_;
  Handle file_;
};

/// A dataset that holds rows, checked: one dimension, the fields wanted, and no more rows than the file has bytes for.
class SourceTable {
 public:
  /// Throws UsageError naming file and table.
  SourceTable(const SourceFile& file, hid_t group, const std::string& name, std::size_t row_bytes,
              const std::vector<std::string>& fields);
  std::uint64_t rows() const { return rows_; }
  /// Reads `count` rows from `first` on into `packed` (count x row bytes). first + count <= rows().
  void read(std::uint64_t first, std::uint64_t count, hid_t type, std::byte* packed) const;

 private:
  void check_type(std::size_t row_bytes, const std::vector<std::string>& fields) const;
  void check_rows(const SourceFile& file) const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::string path_;
  std::string name_;
  Handle dataset_;
  std::uint64_t rows_ = 0;
};

/// A table read block by block. Rows that were never written end it.
template <typename Row>
class TableReader {
 public:
  TableReader(const SourceFile& file, hid_t group)
      : table_(file, group, Table<Row>::kName, packed_size<Row>(), field_names()),
        type_(packed_type<Row>(file.path())) {}

  /// At most so many will come.
  std::uint64_t rows() const { return table_.rows(); }

  /// Calls consume(vector of rows) block after block. Returns how many rows at the end were never written.
  template <typename Consume>
  std::uint64_t read(const Consume& consume) const {
    std::vector<std::byte> packed(static_cast<std::size_t>(std::min(kBlockRows, rows())) * packed_size<Row>());
    std::vector<Row> block;
    for (std::uint64_t first = 0; first < rows(); first += kBlockRows) {
      const auto count = std::min(kBlockRows, rows() - first);
      table_.read(first, count, type_.get(), packed.data());
      block.clear();
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto* from = packed.data() + i * packed_size<Row>();
        if (unwritten<Row>(from)) {
          consume(block);
          return rows() - first - i;
        }
        block.push_back(unpack<Row>(from));
      }
      consume(block);
    }
    return 0;
  }

 private:
  static constexpr std::uint64_t kBlockRows = 65536;

  static std::vector<std::string> field_names() {
    std::vector<std::string> names;
    for_each_field<Row>([&](const auto& field) { names.emplace_back(field.name); });
    return names;
  }

  SourceTable table_;
  Handle type_;
};

}  // namespace fluentps::trace
