#include "apps/train/ini_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "fluentps/error.hpp"
#include "text/words.hpp"

namespace fluentps::app {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kLargestFile = std::size_t{1} << 20;

/// A # starts a comment at the beginning of a line or after white space.
std::string without_comment(const std::string& line) {
  for (std::size_t at = 0; at < line.size(); ++at)
    if (line[at] == '#' && (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t')) return line.substr(0, at);
  return line;
}

}  // namespace

std::vector<IniEntry> parse_ini(const std::string& text, const std::string& name) {
  std::istringstream in(text.rfind(kByteOrderMark, 0) == 0 ? text.substr(kByteOrderMark.size()) : text);
  std::vector<IniEntry> entries;
  std::map<std::string, int> seen;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::string content{trim(without_comment(line))};
    if (content.empty() || (content.front() == '[' && content.back() == ']')) continue;
    const auto equals = content.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError(fmt::format("{}:{}: '{}' is not of the form key = value", name, number, content));
    IniEntry entry{std::string(trim(content.substr(0, equals))), std::string(trim(content.substr(equals + 1))), number};
    if (const auto [at, fresh] = seen.emplace(entry.key, number); !fresh)
      throw UsageError(fmt::format("{}:{}: '{}' was given before, in line {}; remove one of them", name, number,
                                   entry.key, at->second));
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<IniEntry> read_ini(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError(fmt::format("cannot read the configuration file {}: {}", path, std::strerror(errno)));
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof()))
    throw UsageError(fmt::format("cannot read the configuration file {}; is it a folder?", path));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kLargestFile)
    throw UsageError(fmt::format("the configuration file {} is larger than 1 MiB; is it the right file?", path));
  return parse_ini(text, path);
}

}  // namespace fluentps::app
