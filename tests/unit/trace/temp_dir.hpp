/// What the tests of the trace share: a folder that goes away, rows with known values, forked writers.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "trace/reader.hpp"
#include "trace/writer.hpp"

namespace fluentps::trace {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "fluentps trace ü XXXXXX").string();
    path_ = ::mkdtemp(name.data()) == nullptr ? "" : name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Attributes rank_attributes(const std::string& role, int rank, int index) {
  return {{"schema", "fluentps-trace/1"},        {"role", role},    {"rank", std::to_string(rank)},
          {"role_index", std::to_string(index)}, {"host", "node7"}, {"sync", "ssp:s=2"}};
}

/// Every field differs from every other and from row to row.
inline IterationRow iteration_row(std::uint32_t i) {
  return {.iteration = i,
          .begin_ns = 1000ULL * i + 1,
          .compute_ns = 1000ULL * i + 2,
          .push_ns = 1000ULL * i + 3,
          .wait_ns = 1000ULL * i + 4,
          .pull_ns = 1000ULL * i + 5,
          .loss = static_cast<float>(i) + 0.5F,
          .lr = static_cast<float>(i) + 0.25F,
          .bytes = 1000ULL * i + 6};
}
inline bool equal(const IterationRow& a, const IterationRow& b) {
  return a.iteration == b.iteration && a.begin_ns == b.begin_ns && a.compute_ns == b.compute_ns &&
         a.push_ns == b.push_ns && a.wait_ns == b.wait_ns && a.pull_ns == b.pull_ns && a.loss == b.loss &&
         a.lr == b.lr && a.bytes == b.bytes;
}
inline WorkerPullRow worker_pull_row(std::uint32_t i) {
  return {.iteration = i,
          .server = 3,
          .request_ns = 7ULL * i,
          .grant_ns = 7ULL * i + 1,
          .done_ns = 7ULL * i + 2,
          .v = i + 9};
}
inline bool equal(const WorkerPullRow& a, const WorkerPullRow& b) {
  return a.iteration == b.iteration && a.server == b.server && a.request_ns == b.request_ns &&
         a.grant_ns == b.grant_ns && a.done_ns == b.done_ns && a.v == b.v;
}

/// A counter that parent and forked child share.
class SharedCounter {
 public:
  SharedCounter()
      : value_(new (::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<std::uint64_t>(0)) {}
  ~SharedCounter() { ::munmap(value_, sizeof(*value_)); }
  std::atomic<std::uint64_t>& operator*() { return *value_; }

 private:
  std::atomic<std::uint64_t>* value_;
};

/// Runs `body` in a child process; returns its id.
inline pid_t fork_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    body();
    ::_exit(0);
  } catch (...) {
    ::_exit(1);
  }
}
inline int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace fluentps::trace
