/// --sync: any text is a plan or refused, and a plan printed back is the same plan.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fluentps/error.hpp"
#include "sync/sync_plan.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const fluentps::SyncPlan plan(std::string(reinterpret_cast<const char*>(data), size), 4, 2);
    const auto canonical = plan.canonical();
    if (fluentps::SyncPlan(canonical, 4, 2).canonical() != canonical) std::abort();
  } catch (const fluentps::UsageError&) {
  }
  return 0;
}
