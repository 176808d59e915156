/// The tables of a trace, each described once: name, rows per chunk, fields. HDF5 types, packing and reading follow.
///
/// On disk a row is packed: its fields in this order, without gaps, little-endian as the machine has them. In memory
/// the compiler pads; packing at once spares HDF5's field-by-field conversion and keeps undefined bytes out of the
/// files.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <tuple>

#include "trace/rows.hpp"

namespace fluentps::trace {

template <typename Row, typename Value>
struct Field {
  const char* name;
  Value Row::*member;
};
template <typename Row, typename Value>
Field(const char*, Value Row::*) -> Field<Row, Value>;  // clang 14 does not deduce it for an aggregate

template <typename Row>
struct Table;

template <>
struct Table<IterationRow> {
  using R = IterationRow;
  static constexpr const char* kName = "iterations";
  static constexpr std::size_t kChunkRows = 2048;
  static constexpr auto kFields = std::tuple{Field{"iteration", &R::iteration},
                                             Field{"begin_ns", &R::begin_ns},
                                             Field{"compute_ns", &R::compute_ns},
                                             Field{"push_ns", &R::push_ns},
                                             Field{"wait_ns", &R::wait_ns},
                                             Field{"pull_ns", &R::pull_ns},
                                             Field{"loss", &R::loss},
                                             Field{"lr", &R::lr},
                                             Field{"bytes", &R::bytes}};
};

template <>
struct Table<WorkerPullRow> {
  using R = WorkerPullRow;
  static constexpr const char* kName = "pulls";
  static constexpr std::size_t kChunkRows = 2048;
  static constexpr auto kFields =
      std::tuple{Field{"iteration", &R::iteration}, Field{"server", &R::server},   Field{"request_ns", &R::request_ns},
                 Field{"grant_ns", &R::grant_ns},   Field{"done_ns", &R::done_ns}, Field{"v", &R::v}};
};

template <>
struct Table<EvaluationRow> {
  using R = EvaluationRow;
  static constexpr const char* kName = "evaluations";
  static constexpr std::size_t kChunkRows = 128;
  static constexpr auto kFields =
      std::tuple{Field{"iteration", &R::iteration}, Field{"time_ns", &R::time_ns}, Field{"test_loss", &R::test_loss},
                 Field{"test_accuracy", &R::test_accuracy}};
};

template <>
struct Table<PushRow> {
  using R = PushRow;
  static constexpr const char* kName = "pushes";
  static constexpr std::size_t kChunkRows = 2048;
  static constexpr auto kFields = std::tuple{Field{"worker", &R::worker},
                                             Field{"iteration", &R::iteration},
                                             Field{"arrive_ns", &R::arrive_ns},
                                             Field{"applied_ns", &R::applied_ns},
                                             Field{"bytes", &R::bytes},
                                             Field{"staleness", &R::staleness},
                                             Field{"late", &R::late}};
};

template <>
struct Table<ServerPullRow> {
  using R = ServerPullRow;
  static constexpr const char* kName = "pulls";
  static constexpr std::size_t kChunkRows = 2048;
  static constexpr auto kFields = std::tuple{Field{"worker", &R::worker},         Field{"iteration", &R::iteration},
                                             Field{"request_ns", &R::request_ns}, Field{"answer_ns", &R::answer_ns},
                                             Field{"v_request", &R::v_request},   Field{"v_answer", &R::v_answer},
                                             Field{"delayed", &R::delayed}};
};

template <>
struct Table<AdvanceRow> {
  using R = AdvanceRow;
  static constexpr const char* kName = "advances";
  static constexpr std::size_t kChunkRows = 2048;
  static constexpr auto kFields = std::tuple{Field{"v", &R::v}, Field{"time_ns", &R::time_ns}};
};

/// Calls visit(field) for every field of the row, in the order on disk.
template <typename Row, typename Visit>
constexpr void for_each_field(const Visit& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, Table<Row>::kFields);
}

template <typename Row, typename Value>
constexpr std::size_t size_of(const Field<Row, Value>&) {
  return sizeof(Value);
}

/// Bytes of a row on disk.
template <typename Row>
constexpr std::size_t packed_size() {
  return std::apply([](const auto&... field) { return (size_of(field) + ...); }, Table<Row>::kFields);
}

template <typename Row>
void pack(const Row& row, std::byte* to) {
  for_each_field<Row>([&](const auto& field) {
    std::memcpy(to, &(row.*field.member), size_of(field));
    to += size_of(field);
  });
}

template <typename Row>
Row unpack(const std::byte* from) {
  Row row{};
  for_each_field<Row>([&](const auto& field) {
    std::memcpy(&(row.*field.member), from, size_of(field));
    from += size_of(field);
  });
  return row;
}

/// A row of which HDF5 made room but which was never written: every byte has this value (the dataset's fill value).
constexpr int kUnwrittenByte = 0xFF;

template <typename Row>
bool unwritten(const std::byte* packed) {
  static constexpr auto kUnwritten = [] {
    std::array<std::byte, packed_size<Row>()> bytes{};
    bytes.fill(std::byte{kUnwrittenByte});
    return bytes;
  }();
  return std::memcmp(packed, kUnwritten.data(), kUnwritten.size()) == 0;
}

}  // namespace fluentps::trace
