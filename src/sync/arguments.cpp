/// Reads the arguments of one synchronization model.
#include "sync/arguments.hpp"

#include <fmt/format.h>

#include <vector>

#include "fluentps/error.hpp"
#include "text/words.hpp"

namespace fluentps {

bool ArgumentReader::has(std::string_view key) {
  asked_.emplace(key);
  return arguments_.contains(key);
}

const std::string& ArgumentReader::text(std::string_view key) {
  if (!has(key)) throw UsageError(fmt::format("--sync: the argument {} is missing, write {}", key, signature_));
  return arguments_.find(key)->second;
}

void ArgumentReader::refuse(std::string_view key, const std::string& found, const std::string& wanted) const {
  throw UsageError(fmt::format("--sync: {}={} does not fit {}, give {}", key, found, signature_, wanted));
}

std::int64_t ArgumentReader::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const auto& found = text(key);
  const auto value = parse_integer(found);
  if (!value || *value < low || *value > high) refuse(key, found, fmt::format("an integer from {} to {}", low, high));
  return *value;
}

double ArgumentReader::number(std::string_view key, double above, double high) {
  const auto& found = text(key);
  const auto value = parse_number(found);
  if (!value || !(*value > above) || *value > high)
    refuse(key, found, fmt::format("a number above {} and at most {}", above, high));
  return *value;
}

bool ArgumentReader::first_of(std::string_view first, std::string_view second) {
  const bool has_first = has(first);
  if (has_first == has(second))
    throw UsageError(fmt::format("--sync: found {} {} {} {}, write {} with exactly one of them",
                                 has_first ? "both" : "neither", first, has_first ? "and" : "nor", second, signature_));
  return has_first;
}

void ArgumentReader::finish() const {
  for (const auto& [key, value] : arguments_) {
    if (asked_.contains(key)) continue;
    if (asked_.empty())
      throw UsageError(fmt::format("--sync: {} takes no arguments, found {}={}", signature_, key, value));
    const std::vector<std::string> valid(asked_.begin(), asked_.end());
    throw UsageError(fmt::format("--sync: unknown argument {}={}, the nearest of {} is {}", key, value, signature_,
                                 nearest_name(key, valid)));
  }
}

}  // namespace fluentps
