/// Writes, syncs, renames.
#include "trace/replace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fluentps/error.hpp"

namespace fluentps::trace {
namespace {

void bring_to_disk(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!synced) throw RunError(fmt::format("{} cannot be brought to the disk: {}", path, std::strerror(error)));
}

}  // namespace

void replace_file(const std::string& path, const std::function<void(const std::string&)>& write) {
  const auto temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  try {
    write(temporary);
    bring_to_disk(temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      throw RunError(fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace fluentps::trace
