/// Writes and reads attributes.
#include "trace/attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace fluentps::trace {
namespace {

constexpr std::size_t kLongestAttribute_bytes = 60'000;  // an attribute in the object header ends at 64 KiB
constexpr std::size_t kLongestText_bytes = 64U << 20;    // of a text that is read; a sane limit for hostile files

/// Fixed length and UTF-8: no global heap, which SWMR does not protect, and a size that can be checked before reading.
Handle text_type(std::size_t bytes, const std::string& path) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "H5Tcopy", path);
  check_hdf5(H5Tset_size(type.get(), bytes), "H5Tset_size", path);
  check_hdf5(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset", path);
  return type;
}

void write_text(hid_t object, const std::string& name, const std::string& value, const std::string& path) {
  const auto type = text_type(value.size() + 1, path);
  const Handle scalar(H5Screate(H5S_SCALAR), H5Sclose, "H5Screate", path);
  if (value.size() <= kLongestAttribute_bytes) {
    const Handle attribute(H5Acreate2(object, name.c_str(), type.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT),
                           H5Aclose, "H5Acreate2", path);
    check_hdf5(H5Awrite(attribute.get(), type.get(), value.c_str()), "H5Awrite", path);
  } else {
    const Handle dataset(
        H5Dcreate2(object, name.c_str(), type.get(), scalar.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose,
        "H5Dcreate2", path);
    check_hdf5(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.c_str()), "H5Dwrite", path);
  }
}

/// Reads a fixed-length text with `read(type, buffer)`.
template <typename Read>
std::string read_text(hid_t type, const std::string& path, const Read& read) {
  const auto bytes = H5Tget_size(type);
  if (bytes > kLongestText_bytes)
    throw UsageError(fmt::format("{} holds a text of {} bytes; that is no trace file of fluentps", path, bytes));
  std::string text(bytes, '\0');
  check_hdf5(read(type, text.data()), "H5Aread", path);
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

struct Collector {
  Attributes attributes;
  const std::string& path;
  std::string failure;  ///< exceptions do not pass through the C library
};

std::optional<std::string> attribute_text(hid_t attribute, const std::string& path) {
  const Handle type(H5Aget_type(attribute), H5Tclose, "H5Aget_type", path);
  const Handle space(H5Aget_space(attribute), H5Sclose, "H5Aget_space", path);
  if (H5Sget_simple_extent_npoints(space.get()) != 1) return std::nullopt;
  switch (H5Tget_class(type.get())) {
    case H5T_STRING: {
      if (H5Tis_variable_str(type.get()) <= 0)
        return read_text(type.get(), path, [&](hid_t as, void* to) { return H5Aread(attribute, as, to); });
      char* text = nullptr;
      check_hdf5(H5Aread(attribute, type.get(), &text), "H5Aread", path);
      std::string copy = text == nullptr ? "" : text;
      H5free_memory(text);
      return copy;
    }
    case H5T_INTEGER: {
      std::int64_t value = 0;
      check_hdf5(H5Aread(attribute, H5T_NATIVE_INT64, &value), "H5Aread", path);
      return std::to_string(value);
    }
    case H5T_FLOAT: {
      double value = 0;
      check_hdf5(H5Aread(attribute, H5T_NATIVE_DOUBLE, &value), "H5Aread", path);
      return fmt::format("{}", value);
    }
    default:
      return std::nullopt;
  }
}

herr_t visit_attribute(hid_t object, const char* name, const H5A_info_t*, void* data) {
  auto& collector = *static_cast<Collector*>(data);
  try {
    const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose, "H5Aopen", collector.path);
    if (auto text = attribute_text(attribute.get(), collector.path))
      collector.attributes.emplace_back(name, std::move(*text));
    return 0;
  } catch (const std::exception& error) {
    collector.failure = error.what();
    return -1;
  }
}

/// Scalar datasets hold what is no attribute: long texts, the done mark.
std::optional<std::string> dataset_text(hid_t dataset, const std::string& path) {
  const Handle type(H5Dget_type(dataset), H5Tclose, "H5Dget_type", path);
  const Handle space(H5Dget_space(dataset), H5Sclose, "H5Dget_space", path);
  if (H5Sget_simple_extent_type(space.get()) != H5S_SCALAR) return std::nullopt;
  const auto kind = H5Tget_class(type.get());
  if (kind == H5T_STRING && H5Tis_variable_str(type.get()) == 0)
    return read_text(type.get(), path,
                     [&](hid_t as, void* to) { return H5Dread(dataset, as, H5S_ALL, H5S_ALL, H5P_DEFAULT, to); });
  if (kind != H5T_INTEGER) return std::nullopt;
  std::int64_t value = 0;
  check_hdf5(H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value), "H5Dread", path);
  return std::to_string(value);
}

herr_t visit_link(hid_t object, const char* name, const H5L_info_t* link, void* data) {
  auto& collector = *static_cast<Collector*>(data);
  if (link->type != H5L_TYPE_HARD) return 0;
  try {
    const Handle member(H5Oopen(object, name, H5P_DEFAULT), H5Oclose, "H5Oopen", collector.path);
    if (H5Iget_type(member.get()) != H5I_DATASET) return 0;
    if (auto text = dataset_text(member.get(), collector.path))
      collector.attributes.emplace_back(name, std::move(*text));
    return 0;
  } catch (const std::exception& error) {
    collector.failure = error.what();
    return -1;
  }
}

}  // namespace

void write_attributes(hid_t object, const Attributes& attributes, const std::string& path) {
  for (auto each = attributes.begin(); each != attributes.end(); ++each) {
    const bool again =
        std::any_of(each + 1, attributes.end(), [&](const auto& later) { return later.first == each->first; });
    if (!again) write_text(object, each->first, each->second, path);
  }
}

void write_integer(hid_t object, const char* name, std::int64_t value, const std::string& path) {
  const Handle scalar(H5Screate(H5S_SCALAR), H5Sclose, "H5Screate", path);
  const Handle attribute(H5Acreate2(object, name, H5T_NATIVE_INT64, scalar.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                         "H5Acreate2", path);
  check_hdf5(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value), "H5Awrite", path);
}

Attributes read_attributes(hid_t object, const std::string& path) {
  Collector collector{.attributes = {}, .path = path, .failure = {}};
  hsize_t index = 0;
  herr_t status = H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &index, visit_attribute, &collector);
  index = 0;
  if (status >= 0) status = H5Literate(object, H5_INDEX_NAME, H5_ITER_INC, &index, visit_link, &collector);
  if (!collector.failure.empty()) throw UsageError(collector.failure);
  check_hdf5(status, "H5Aiterate2", path);
  std::sort(collector.attributes.begin(), collector.attributes.end());
  return collector.attributes;
}

std::string value_of(const Attributes& attributes, std::string_view name, std::string otherwise) {
  for (auto each = attributes.rbegin(); each != attributes.rend(); ++each)
    if (each->first == name) return each->second;
  return otherwise;
}

std::int64_t number_of(const Attributes& attributes, std::string_view name, std::int64_t otherwise) {
  const auto text = value_of(attributes, name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? value : otherwise;
}

}  // namespace fluentps::trace
