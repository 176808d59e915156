/// Reads the binary versions of CIFAR-10 and CIFAR-100.
#include <fmt/format.h>

#include <fstream>

#include "fluentps/error.hpp"
#include "train/dataset.hpp"

namespace fluentps::train {
namespace {

constexpr std::int64_t kPixels = 3 * 32 * 32;
constexpr std::int64_t kMostBytes = std::int64_t{4} << 30;

}  // namespace

void append_cifar(const std::filesystem::path& file, std::int64_t label_bytes, ImageSet& set) {
  const std::int64_t record = label_bytes + kPixels;
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(file, error));
  std::ifstream input(file, std::ios::binary);
  if (error || !input) {
    throw UsageError(fmt::format("{} cannot be opened: check the directory given by --data", file.string()));
  }
  if (bytes == 0 || bytes % record != 0 || bytes > kMostBytes) {
    throw UsageError(
        fmt::format("{} has {} bytes, not a multiple of {}: its last record begins at byte {}; fetch the "
                    "binary version again",
                    file.string(), bytes, record, bytes / record * record));
  }
  std::vector<std::uint8_t> buffer(static_cast<std::size_t>(record));
  for (std::int64_t offset = 0; offset < bytes; offset += record) {
    if (!input.read(reinterpret_cast<char*>(buffer.data()), record)) {
      throw UsageError(fmt::format("{} cannot be read at byte {}: check the disk", file.string(), offset));
    }
    const std::uint8_t label = buffer[static_cast<std::size_t>(label_bytes - 1)];
    if (label >= set.form.classes) {
      throw UsageError(fmt::format("{} holds label {} at byte {}, but there are {} classes: fetch it again",
                                   file.string(), label, offset + label_bytes - 1, set.form.classes));
    }
    set.labels.push_back(label);
    set.pixels.insert(set.pixels.end(), buffer.begin() + label_bytes, buffer.end());
  }
}

}  // namespace fluentps::train
