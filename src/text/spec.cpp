/// Parses the small specs of the command line.
#include "text/spec.hpp"

#include <fmt/format.h>

#include <cmath>

#include "fluentps/error.hpp"
#include "text/words.hpp"

namespace fluentps {

Spec::Spec(std::string_view text, std::string what) : what_(std::move(what)), full_text_(text) {
  std::string_view rest = trim(text);
  const auto colon = rest.find(':');
  if (colon != std::string_view::npos) {
    name_ = trim(rest.substr(0, colon));
    rest.remove_prefix(colon + 1);
  } else if (rest.find_first_of(",=") == std::string_view::npos) {
    name_ = rest;
    return;
  }
  for (const auto item : split(rest, ',')) {
    const auto equals = item.find('=');
    if (equals == std::string_view::npos) {
      if (item.empty()) throw UsageError(fmt::format("{}: empty item in '{}': write key=value,key=value", what_, text));
      words_.emplace_back(item);
      continue;
    }
    const std::string key{trim(item.substr(0, equals))};
    if (!arguments_.emplace(key, trim(item.substr(equals + 1))).second) {
      throw UsageError(fmt::format("{}: '{}' is given twice in '{}': give it once", what_, key, text));
    }
  }
}

std::optional<std::string> Spec::take(const std::string& key) {
  asked_.insert(key);
  const auto found = arguments_.find(key);
  if (found == arguments_.end()) return std::nullopt;
  return found->second;
}

void Spec::refuse(const std::string& key, const std::string& value, const std::string& wanted) const {
  throw UsageError(fmt::format("{}: {}={} in '{}' is not {}", what_, key, value, full_text_, wanted));
}

bool Spec::has(const std::string& key) { return take(key).has_value(); }

std::string Spec::text(const std::string& key, const std::string& fallback) { return take(key).value_or(fallback); }

double Spec::number(const std::string& key, double fallback, double low, double high) {
  const auto given = take(key);
  if (!given) return fallback;
  const auto value = parse_number(*given);
  if (!value || *value < low || *value > high) refuse(key, *given, fmt::format("a number from {} to {}", low, high));
  return *value;
}

std::int64_t Spec::integer(const std::string& key, std::int64_t fallback, std::int64_t low, std::int64_t high) {
  const auto given = take(key);
  if (!given) return fallback;
  const auto value = parse_integer(*given);
  if (!value || *value < low || *value > high) refuse(key, *given, fmt::format("an integer from {} to {}", low, high));
  return *value;
}

std::int64_t Spec::count(const std::string& key, std::int64_t fallback, std::int64_t low, std::int64_t high) {
  const auto given = take(key);
  if (!given) return fallback;
  std::string_view digits = *given;
  double unit = 1;
  if (!digits.empty()) {
    const char suffix = digits.back();
    unit = suffix == 'k' ? 1e3 : suffix == 'M' ? 1e6 : suffix == 'G' ? 1e9 : 1;
    if (unit > 1) digits.remove_suffix(1);
  }
  const auto value = parse_number(digits);
  const double rounded = value ? std::round(*value * unit) : 0;
  if (!value || rounded < static_cast<double>(low) || rounded > static_cast<double>(high) ||
      std::abs(rounded - *value * unit) > 1e-6) {
    refuse(key, *given, fmt::format("a whole count from {} to {}, such as 853018, 61M or 1.5k", low, high));
  }
  return static_cast<std::int64_t>(rounded);
}

std::vector<std::int64_t> Spec::integers(const std::string& key) {
  std::vector<std::int64_t> values;
  const auto given = take(key);
  if (!given) return values;
  for (const auto part : split(*given, '+')) {
    const auto value = parse_integer(part);
    if (!value) refuse(key, *given, "a list of integers joined by '+', such as 32000+48000");
    values.push_back(*value);
  }
  return values;
}

void Spec::finish() const {
  for (const auto& [key, value] : arguments_) {
    if (asked_.contains(key)) continue;
    const std::vector<std::string> valid(asked_.begin(), asked_.end());
    if (valid.empty()) {
      throw UsageError(fmt::format("{}: '{}' takes no arguments, found {}={}", what_, name_, key, value));
    }
    throw UsageError(fmt::format("{}: unknown key '{}' in '{}', did you mean '{}'? Valid: {}", what_, key, full_text_,
                                 nearest_name(key, valid), join_names(valid)));
  }
}

}  // namespace fluentps
