/// Schedules, stragglers and optimizers: any text is understood or refused.
#include <cstdint>
#include <string>

#include "fluentps/error.hpp"
#include "shard/schedule.hpp"
#include "shard/update_rule.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto attempt = [](const auto& step) {
    try {
      step();
    } catch (const fluentps::UsageError&) {
    }
  };
  attempt([&] { fluentps::make_schedule({.spec = text, .iterations = 100})->at(50); });
  attempt([&] { fluentps::make_schedule({.spec = "constant", .warmup = text, .iterations = 100})->at(5); });
  attempt([&] { fluentps::make_update_rule({.name = text}, 10, {}); });
  return 0;
}
