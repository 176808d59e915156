/// Parses the small specs of the command line.
#include "shard/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "fluentps/error.hpp"

namespace fluentps {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
std::optional<T> parse_all(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& valid) {
  return *std::min_element(valid.begin(), valid.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
}

std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_all<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) { return parse_all<std::int64_t>(text); }

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
