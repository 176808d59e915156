/// Claims a run's folder.
#include "trace/run_dir.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "fluentps/error.hpp"

namespace fluentps::trace {
namespace {

constexpr int kLargestSuffix = 100'000;
constexpr std::size_t kLongestId = 200;  // file names end at 255 bytes; the suffix needs some
constexpr std::size_t kLongestModel = 24;

[[noreturn]] void refuse_out(const std::string& out, int error) {
  throw UsageError(fmt::format("no run can be written to --out '{}': {}; give a directory you may write to", out,
                               std::strerror(error)));
}

void check_id(const std::string& id) {
  if (id == "." || id == ".." || id.size() > kLongestId || id.find('/') != std::string::npos ||
      id.find('\0') != std::string::npos)
    throw UsageError(fmt::format(
        "--run-id '{}' is no name of a directory; give a plain name of at most {} bytes without '/'", id, kLongestId));
}

}  // namespace

std::string default_run_id(const std::string& model) {
  std::string name;
  for (const char c : model) {
    if (name.size() == kLongestModel) break;
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') break;
    name += c;
  }
  return fmt::format("{:%Y%m%dT%H%M%S}Z{}{}", fmt::gmtime(std::time(nullptr)), name.empty() ? "" : "-", name);
}

std::string create_run_dir(const std::string& out, const std::string& run_id, const std::string& model) {
  const auto id = run_id.empty() ? default_run_id(model) : run_id;
  check_id(id);
  std::error_code error;
  std::filesystem::create_directories(out, error);
  if (error) refuse_out(out, error.value());
  for (int suffix = 0; suffix <= kLargestSuffix; ++suffix) {
    const auto name = suffix == 0 ? id : fmt::format("{}-r{}", id, suffix);
    const auto path = (std::filesystem::path(out) / name).string();
    if (::mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) refuse_out(out, errno);
  }
  throw UsageError(
      fmt::format("--out '{}' holds more than {} runs named '{}'; give another --run-id", out, kLargestSuffix, id));
}

std::string rank_file_name(int rank) { return fmt::format("rank-{:04}.h5", rank); }

}  // namespace fluentps::trace
