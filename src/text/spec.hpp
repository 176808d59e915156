/// Parses the small specs of the command line: `name:key=value,key=value,word`. Every mistake is a UsageError.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fluentps {

/// One spec. Arguments are asked for by key; finish() then refuses what nobody asked for.
class Spec {
 public:
  /// `what` begins every error text, e.g. "--straggler". Throws UsageError on empty items and doubled keys.
  Spec(std::string_view text, std::string what);

  const std::string& name() const { return name_; }  ///< before the ':', or all of a text without ':', ',' and '='
  const std::vector<std::string>& words() const { return words_; }  ///< items without '='
  bool has(const std::string& key);
  std::string text(const std::string& key, const std::string& fallback);
  /// A finite number in [low, high].
  double number(const std::string& key, double fallback, double low, double high);
  std::int64_t integer(const std::string& key, std::int64_t fallback, std::int64_t low, std::int64_t high);
  /// An integer with an optional decimal suffix k, M or G: "61M", "1.5k".
  std::int64_t count(const std::string& key, std::int64_t fallback, std::int64_t low, std::int64_t high);
  /// Integers joined by '+': "32000+48000".
  std::vector<std::int64_t> integers(const std::string& key);
  /// Throws UsageError naming the first key that was never asked for, and the nearest that was.
  void finish() const;

 private:
  std::optional<std::string> take(const std::string& key);
  [[noreturn]] void refuse(const std::string& key, const std::string& value, const std::string& wanted) const;

  std::string what_;
  std::string full_text_;
  std::string name_;
  std::vector<std::string> words_;
  std::map<std::string, std::string> arguments_;
  std::set<std::string> asked_;
};

}  // namespace fluentps
