/// Trace files, damaged or foreign: read or refused.
#include <cstdint>

#include "fluentps/error.hpp"
#include "fuzz_file.hpp"
#include "trace/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fluentps::fuzz::FuzzFile file(data, size, ".h5");
  try {
    fluentps::trace::load_run(file.path());
  } catch (const fluentps::UsageError&) {
  } catch (const fluentps::RunError&) {
  }
  return 0;
}
