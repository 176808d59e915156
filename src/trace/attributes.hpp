/// Attributes of a trace file: texts, written once and read back as name and value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/handle.hpp"
#include "trace/writer.hpp"

namespace fluentps::trace {

/// Writes all, the last of equal names; `object` is a file or group. A text too long for an attribute (64 KiB in HDF5)
/// becomes a scalar string dataset of that name beside the tables.
void write_attributes(hid_t object, const Attributes& attributes, const std::string& path);
void write_integer(hid_t object, const char* name, std::int64_t value, const std::string& path);

/// All attributes, and string datasets, of a file or group, sorted by name; numbers as decimal text. What is neither
/// text nor number is left out. Throws UsageError where a size is absurd.
Attributes read_attributes(hid_t object, const std::string& path);

/// The value of that name, or `otherwise`.
std::string value_of(const Attributes& attributes, std::string_view name, std::string otherwise = "");
/// The same as a number; `otherwise` where it is missing or no number.
std::int64_t number_of(const Attributes& attributes, std::string_view name, std::int64_t otherwise = 0);

}  // namespace fluentps::trace
