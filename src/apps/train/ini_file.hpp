/// Reads `key = value` files: comments after #, section headers for the eye only, Windows line ends and a byte-order
/// mark allowed.
#pragma once

#include <string>
#include <vector>

namespace fluentps::app {

struct IniEntry {
  std::string key;
  std::string value;
  int line = 0;
};

/// Throws UsageError naming file and line: unreadable file, a line without '=', a key given twice.
std::vector<IniEntry> read_ini(const std::string& path);
/// The same on a text; `name` stands for the file in messages.
std::vector<IniEntry> parse_ini(const std::string& text, const std::string& name);

}  // namespace fluentps::app
