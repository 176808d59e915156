/// IDX images and labels; the first byte says where the labels begin.
#include <cstdint>

#include "fluentps/error.hpp"
#include "fuzz_file.hpp"
#include "train/dataset.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::size_t cut = 1 + data[0] * (size - 1) / 256;
  const fluentps::fuzz::FuzzFile images(data + 1, cut - 1, "-images");
  const fluentps::fuzz::FuzzFile labels(data + cut, size - cut, "-labels");
  try {
    fluentps::train::read_idx(images.path(), labels.path(), 10);
  } catch (const fluentps::UsageError&) {
  }
  return 0;
}
