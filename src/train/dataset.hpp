/// Labelled images in memory, and where they come from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fluentps::train {

/// Extents of one image and the number of classes.
struct ImageForm {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 0;

  std::int64_t pixels() const { return channels * height * width; }
  friend bool operator==(const ImageForm&, const ImageForm&) = default;
};

/// Images one after another, each channel by channel, row by row, 0..255.
struct ImageSet {
  ImageForm form;
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
};

/// A training and a test set with their preprocessing: a network sees (pixel - shift) * scale.
struct DataSets {
  std::string name;
  ImageSet train;
  ImageSet test;
  float shift = 0;
  float scale = 1;
};

/// fashion-mnist | mnist | cifar10 | cifar100 | synthetic:images=2000,test=500,classes=10,channels=1,size=28. An empty
/// directory means where the Debian package puts it. Problems of one process that ask for the same data share it.
/// Throws UsageError: unknown name, missing or malformed file (names file and byte offset).
std::shared_ptr<const DataSets> load_data_sets(const std::string& name, const std::string& directory);

/// The IDX format of MNIST (LeCun): images with magic 0x803, labels with magic 0x801; gzip or plain.
ImageSet read_idx(const std::filesystem::path& images, const std::filesystem::path& labels, std::int64_t classes);

/// The binary versions of CIFAR-10 and CIFAR-100 (Krizhevsky): records of `label_bytes` label bytes, the last of which
/// counts, and 3072 pixels. Appends to `set`.
void append_cifar(const std::filesystem::path& file, std::int64_t label_bytes, ImageSet& set);

DataSets make_synthetic_images(const std::string& spec);

}  // namespace fluentps::train
