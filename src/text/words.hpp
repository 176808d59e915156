/// Words, numbers and names of the command line and of small specs. Plain C++.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fluentps {

inline constexpr std::string_view kBlanks = " \t\r\n";

/// Without blanks at both ends. A part of `text`.
std::string_view trim(std::string_view text);

/// The parts between separators, each trimmed; of an empty text one empty part. Parts of `text`.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The whole text as a finite number, or as an integer; nullopt where it is none.
std::optional<double> parse_number(std::string_view text);
std::optional<std::int64_t> parse_integer(std::string_view text);

/// The valid name closest to `name` by edit distance: what a mistyped one was meant to be. `valid` is not empty.
std::string nearest_name(std::string_view name, const std::vector<std::string>& valid);

/// "a, b, c"
std::string join_names(const std::vector<std::string>& names);

}  // namespace fluentps
