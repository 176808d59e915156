/// Reads the arguments of one synchronization model; every mistake is a UsageError that shows the model's signature.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "fluentps/sync_model.hpp"

namespace fluentps {

/// Largest staleness bound, in iterations: far beyond any use, far below overflow.
inline constexpr std::int64_t kMaxStaleness = 1'000'000'000;

class ArgumentReader {
 public:
  /// `signature`: "ssp:s=S". All three outlive the reader.
  ArgumentReader(std::string_view signature, const SyncArguments& arguments)
      : signature_(signature), arguments_(arguments) {}

  bool has(std::string_view key);
  /// An integer in [low, high].
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high);
  /// A number in (above, high].
  double number(std::string_view key, double above, double high);
  /// Exactly one of the two is given; returns whether it is the first.
  bool first_of(std::string_view first, std::string_view second);
  /// Refuses keys that nobody asked for.
  void finish() const;

 private:
  const std::string& text(std::string_view key);
  [[noreturn]] void refuse(std::string_view key, const std::string& found, const std::string& wanted) const;

  std::string_view signature_;
  const SyncArguments& arguments_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace fluentps
