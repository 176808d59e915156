/// CIFAR records with one and two label bytes.
#include <cstdint>

#include "fluentps/error.hpp"
#include "fuzz_file.hpp"
#include "train/dataset.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fluentps::fuzz::FuzzFile file(data, size, "-batch");
  for (const std::int64_t label_bytes : {1, 2}) {
    fluentps::train::ImageSet set;
    set.form = {.channels = 3, .height = 32, .width = 32, .classes = 10};
    try {
      fluentps::train::append_cifar(file.path(), label_bytes, set);
    } catch (const fluentps::UsageError&) {
    }
  }
  return 0;
}
