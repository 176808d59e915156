/// For readers that want a file: the fuzzer's bytes under a name of this process.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

namespace fluentps::fuzz {

class FuzzFile {
 public:
  FuzzFile(const std::uint8_t* data, std::size_t size, const std::string& suffix)
      : path_(std::filesystem::temp_directory_path() / ("fluentps-fuzz-" + std::to_string(::getpid()) + suffix)) {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    if (file == nullptr) std::abort();
    if (std::fwrite(data, 1, size, file) != size) std::abort();
    std::fclose(file);
  }
  ~FuzzFile() { std::filesystem::remove(path_); }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace fluentps::fuzz
