/// HDF5 types of the tables' rows.
#pragma once

#include <cstdint>
#include <type_traits>

#include "trace/handle.hpp"
#include "trace/tables.hpp"

namespace fluentps::trace {

template <typename Value>
hid_t native_type() {
  if constexpr (std::is_same_v<Value, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::is_same_v<Value, std::uint16_t>) return H5T_NATIVE_UINT16;
  if constexpr (std::is_same_v<Value, std::uint32_t>) return H5T_NATIVE_UINT32;
  if constexpr (std::is_same_v<Value, std::uint64_t>) return H5T_NATIVE_UINT64;
  if constexpr (std::is_same_v<Value, float>) return H5T_NATIVE_FLOAT;
}

/// The packed compound type of a row, on disk and for transfers alike.
template <typename Row>
Handle packed_type(const std::string& path) {
  Handle type(H5Tcreate(H5T_COMPOUND, packed_size<Row>()), H5Tclose, "H5Tcreate", path);
  std::size_t offset = 0;
  for_each_field<Row>([&]<typename Value>(const Field<Row, Value>& field) {
    check_hdf5(H5Tinsert(type.get(), field.name, offset, native_type<Value>()), "H5Tinsert", path);
    offset += sizeof(Value);
  });
  return type;
}

}  // namespace fluentps::trace
