/// Configuration files: any bytes are read or refused.
#include <cstdint>
#include <string>

#include "apps/train/ini_file.hpp"
#include "fluentps/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    fluentps::app::parse_ini(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const fluentps::UsageError&) {
  }
  return 0;
}
