/// Reads IDX files, which may be hostile: nothing is allocated on a header's word alone.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>

#include "fluentps/error.hpp"
#include "train/dataset.hpp"

namespace fluentps::train {
namespace {

constexpr std::int64_t kMostImages = 100'000'000;
constexpr std::int64_t kLargestExtent = 4096;
constexpr std::size_t kReadBytes = std::size_t{1} << 20;

/// A gzip or plain file read forwards. Offsets are of the decompressed bytes.
class Input {
 public:
  explicit Input(const std::filesystem::path& path) : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose) {
    if (!file_)
      throw UsageError(fmt::format("{} cannot be opened: check the directory given by --data", path.string()));
  }

  /// Fewer bytes than asked for at the end of the file.
  std::size_t read(std::uint8_t* into, std::size_t bytes) {
    const int got = gzread(file_.get(), into, static_cast<unsigned>(bytes));
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    // A gzip stream cut short reads as far as it goes; Z_BUF_ERROR tells it from a true end.
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) fail(fmt::format("is damaged ({})", text));
    offset_ += got;
    return static_cast<std::size_t>(got);
  }

  std::uint32_t big_endian() {
    std::array<std::uint8_t, 4> bytes{};
    if (read(bytes.data(), 4) != 4) fail("ends inside its header");
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
  }

  /// Exactly `bytes` more, and then the end. Memory grows with what is really there.
  std::vector<std::uint8_t> rest(std::int64_t bytes) {
    const std::int64_t header = offset_;
    std::vector<std::uint8_t> data;
    while (static_cast<std::int64_t>(data.size()) < bytes) {
      const std::size_t old = data.size();
      const std::size_t want = std::min(kReadBytes, static_cast<std::size_t>(bytes) - old);
      data.resize(old + want);
      if (read(data.data() + old, want) < want) {
        fail(fmt::format("ends early: its header promises {} bytes", header + bytes));
      }
    }
    std::uint8_t extra = 0;
    if (read(&extra, 1) != 0) fail(fmt::format("goes on after the {} bytes its header promises", header + bytes));
    data.shrink_to_fit();
    return data;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError(fmt::format("{} {}, found at byte {}: fetch it again", path_.string(), what, offset_));
  }

 private:
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::int64_t offset_ = 0;
};

std::int64_t read_extent(Input& input, const char* what, std::int64_t most) {
  const std::int64_t value = input.big_endian();
  if (value < 1 || value > most) input.fail(fmt::format("has {} {}, but 1 to {} are possible", value, what, most));
  return value;
}

void require_magic(Input& input, std::uint32_t wanted, const char* kind) {
  const std::uint32_t magic = input.big_endian();
  if (magic != wanted) {
    input.fail(fmt::format("is no IDX file of {}: it begins with {:#010x} instead of {:#010x}", kind, magic, wanted));
  }
}

}  // namespace

ImageSet read_idx(const std::filesystem::path& images, const std::filesystem::path& labels, std::int64_t classes) {
  ImageSet set;
  Input image_file(images);
  require_magic(image_file, 0x803, "images");
  const std::int64_t count = read_extent(image_file, "images", kMostImages);
  set.form.channels = 1;
  set.form.height = read_extent(image_file, "rows", kLargestExtent);
  set.form.width = read_extent(image_file, "columns", kLargestExtent);
  set.form.classes = classes;
  set.pixels = image_file.rest(count * set.form.pixels());

  Input label_file(labels);
  require_magic(label_file, 0x801, "labels");
  const std::int64_t label_count = read_extent(label_file, "labels", kMostImages);
  if (label_count != count) label_file.fail(fmt::format("has {} labels for {} images", label_count, count));
  set.labels = label_file.rest(count);
  const auto bad = std::find_if(set.labels.begin(), set.labels.end(), [&](auto label) { return label >= classes; });
  if (bad != set.labels.end()) {
    throw UsageError(fmt::format("{} holds label {} at byte {}, but there are {} classes: fetch it again",
                                 labels.string(), *bad, 8 + (bad - set.labels.begin()), classes));
  }
  return set;
}

}  // namespace fluentps::train
