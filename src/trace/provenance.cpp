/// Collects provenance from the process itself.
#include "trace/provenance.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#ifndef FLUENTPS_GIT
#define FLUENTPS_GIT "unknown"
#endif

extern char** environ;

namespace fluentps::trace {
namespace {

/// Command line, arguments with spaces or quotes in single quotes, as a shell would take it.
std::string argv_text() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  const std::string raw(std::istreambuf_iterator<char>(in), {});
  std::string text;
  for (std::size_t at = 0; at < raw.size();) {
    const std::string argument(raw.c_str() + at);
    at += argument.size() + 1;
    if (!text.empty()) text += ' ';
    if (!argument.empty() && argument.find_first_of(" \t\n'\"\\$;&|<>*?()`#") == std::string::npos) {
      text += argument;
      continue;
    }
    text += '\'';
    for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

std::string environment_text() {
  constexpr std::array<std::string_view, 6> kPrefixes = {"OMPI_", "UCX_", "SLURM_", "NCCL_", "FLUENTPS_", "HDF5_"};
  std::vector<std::string> lines;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view line = *each;
    if (std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](auto prefix) { return line.starts_with(prefix); }))
      lines.emplace_back(line);
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& line : lines) text += line + '\n';
  return text;
}

std::string versions_text() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("compiler {}; HDF5 {}.{}.{}; fmt {}.{}.{}", __VERSION__, major, minor, release,
                     FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
}

std::string host_text() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string utc_text() {
  const auto now = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms);
}

}  // namespace

Attributes provenance() {
  Attributes attributes = {{"schema", kSchema},           {"git", FLUENTPS_GIT}, {"argv", argv_text()},
                           {"versions", versions_text()}, {"host", host_text()}, {"environment", environment_text()},
                           {"origin_utc", utc_text()}};
  // bin/fluentps-sim names the simulated cluster.
  if (const char* const platform = std::getenv("FLUENTPS_PLATFORM")) attributes.emplace_back("platform", platform);
  return attributes;
}

std::string version_text() { return fmt::format("fluentps {}\n{}\n", FLUENTPS_GIT, versions_text()); }

}  // namespace fluentps::trace
