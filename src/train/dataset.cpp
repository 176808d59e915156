/// Finds and loads data sets by name, once per process.
#include "train/dataset.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

#include "fluentps/error.hpp"
#include "text/words.hpp"

namespace fluentps::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFashionDirectory = "/usr/share/datasets/fashion-mnist";

/// `name` or `name.gz` in `directory`.
fs::path find_idx(const fs::path& directory, const std::string& name, const std::string& advice) {
  for (const char* suffix : {".gz", ""}) {
    if (fs::path path = directory / (name + suffix); fs::exists(path)) return path;
  }
  throw UsageError(fmt::format("{} is missing in {}: {}", name + ".gz", directory.string(), advice));
}

/// Mean and standard deviation of all training pixels, of 0..1.
struct Moments {
  double mean;
  double deviation;
};

DataSets load_mnist_like(const std::string& name, const fs::path& directory, Moments moments,
                         const std::string& advice) {
  constexpr std::int64_t kClasses = 10;
  const auto read = [&](const std::string& part) {
    const fs::path images = find_idx(directory, part + "-images-idx3-ubyte", advice);
    return read_idx(images, find_idx(directory, part + "-labels-idx1-ubyte", advice), kClasses);
  };
  return {.name = name,
          .train = read("train"),
          .test = read("t10k"),
          .shift = static_cast<float>(255 * moments.mean),
          .scale = static_cast<float>(1 / (255 * moments.deviation))};
}

struct CifarLayout {
  std::string name;
  std::string folder;  ///< in the official archive
  std::vector<std::string> train;
  std::string test;
  std::int64_t label_bytes;
  std::int64_t classes;
};

const std::array<CifarLayout, 2>& cifar_layouts() {
  static const std::array<CifarLayout, 2> layouts = {
      {{"cifar10",
        "cifar-10-batches-bin",
        {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
        "test_batch.bin",
        1,
        10},
       {"cifar100", "cifar-100-binary", {"train.bin"}, "test.bin", 2, 100}}};
  return layouts;
}

DataSets load_cifar(const CifarLayout& layout, fs::path directory) {
  const std::string advice = fmt::format(
      "unpack the binary version of {} from https://www.cs.toronto.edu/~kriz/cifar.html and give its folder "
      "{} by --data",
      layout.name, layout.folder);
  if (directory.empty()) throw UsageError(fmt::format("--dataset {} has no --data: {}", layout.name, advice));
  if (fs::exists(directory / layout.folder)) directory /= layout.folder;
  const ImageForm form{.channels = 3, .height = 32, .width = 32, .classes = layout.classes};
  DataSets sets{
      .name = layout.name, .train = {form, {}, {}}, .test = {form, {}, {}}, .shift = 128, .scale = 1.0F / 128};
  for (const auto& file : layout.train) {
    if (fs::exists(directory / file)) append_cifar(directory / file, layout.label_bytes, sets.train);
  }
  if (sets.train.size() == 0) {
    throw UsageError(fmt::format("{} is missing in {}: {}", layout.train.front(), directory.string(), advice));
  }
  if (!fs::exists(directory / layout.test)) {
    throw UsageError(fmt::format("{} is missing in {}: {}", layout.test, directory.string(), advice));
  }
  append_cifar(directory / layout.test, layout.label_bytes, sets.test);
  return sets;
}

DataSets load(const std::string& name, const std::string& directory) {
  const std::string kind = name.substr(0, name.find(':'));
  if (kind == "synthetic") return make_synthetic_images(name);
  if (name == "fashion-mnist") {
    return load_mnist_like(name, directory.empty() ? kFashionDirectory : directory, {0.2860, 0.3530},
                           "install the Debian package dataset-fashion-mnist, or name another directory by --data");
  }
  if (name == "mnist") {
    if (directory.empty()) {
      throw UsageError(
          "--dataset mnist has no --data: give the directory with train-images-idx3-ubyte.gz and the rest");
    }
    return load_mnist_like(name, directory, {0.1307, 0.3081}, "give the directory with the four files by --data");
  }
  std::vector<std::string> valid = {"fashion-mnist", "mnist"};
  for (const auto& layout : cifar_layouts()) {
    if (name == layout.name) return load_cifar(layout, directory);
    valid.push_back(layout.name);
  }
  valid.emplace_back("synthetic");
  throw UsageError(fmt::format("--dataset: unknown data set '{}', did you mean '{}'? Valid: {}", name,
                               nearest_name(name, valid), join_names(valid)));
}

}  // namespace

std::shared_ptr<const DataSets> load_data_sets(const std::string& name, const std::string& directory) {
  // On a simulated cluster all workers share one process; 128 copies of a data set would not fit.
  static std::map<std::pair<std::string, std::string>, std::weak_ptr<const DataSets>> loaded;
  auto& slot = loaded[{name, directory}];
  if (auto sets = slot.lock()) return sets;
  auto sets = std::make_shared<DataSets>(load(name, directory));
  if (sets->train.form != sets->test.form) {
    throw UsageError(fmt::format("--dataset {}: training images are {}x{}, test images {}x{}: use files of one set",
                                 name, sets->train.form.height, sets->train.form.width, sets->test.form.height,
                                 sets->test.form.width));
  }
  slot = sets;
  return sets;
}

}  // namespace fluentps::train
