/// Images made up by a formula: one random pattern per class plus noise, so that networks have something to learn.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fluentps/error.hpp"
#include "text/spec.hpp"
#include "train/dataset.hpp"
#include "train/random.hpp"

namespace fluentps::train {
namespace {

constexpr std::uint64_t kTrainPart = 1;
constexpr std::uint64_t kTestPart = 2;

/// Image i: class i mod classes, its pattern (standard deviation 32 about 128) plus noise of standard deviation 48.
ImageSet make_set(const ImageForm& form, std::int64_t count, std::uint64_t part) {
  ImageSet set{.form = form, .pixels = {}, .labels = {}};
  const auto pixels = static_cast<std::size_t>(form.pixels());
  std::vector<float> patterns(pixels * static_cast<std::size_t>(form.classes));
  Random pattern_random{kDataStream, 0};
  for (auto& value : patterns) value = static_cast<float>(128 + 32 * pattern_random.normal());
  set.pixels.reserve(pixels * static_cast<std::size_t>(count));
  Random noise{kDataStream, part};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = i % form.classes;
    const float* pattern = patterns.data() + static_cast<std::size_t>(label) * pixels;
    for (std::size_t p = 0; p < pixels; ++p) {
      // Four uniforms stand in for a normal (variance 4/12), which is cheap to draw.
      double sum = -2;
      const std::uint64_t bits = noise.next();
      for (int k = 0; k < 4; ++k) sum += static_cast<double>((bits >> (16 * k)) & 0xFFFF) / 65536;
      const double value = pattern[p] + 48 * std::sqrt(3.0) * sum;
      set.pixels.push_back(static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0, 255.0))));
    }
    set.labels.push_back(static_cast<std::uint8_t>(label));
  }
  return set;
}

}  // namespace

DataSets make_synthetic_images(const std::string& text) {
  Spec spec(text, "--dataset");
  const std::int64_t images = spec.count("images", 2000, 1, 10'000'000);
  const std::int64_t test = spec.count("test", 500, 1, 10'000'000);
  ImageForm form;
  form.classes = spec.integer("classes", 10, 2, 256);
  form.channels = spec.integer("channels", 1, 1, 16);
  form.height = form.width = spec.integer("size", 28, 8, 512);
  spec.finish();
  constexpr std::int64_t kMostBytes = std::int64_t{8} << 30;
  if ((images + test) * form.pixels() > kMostBytes) {
    throw UsageError(fmt::format("--dataset: '{}' needs {} bytes: ask for fewer or smaller images", text,
                                 (images + test) * form.pixels()));
  }
  return {.name = "synthetic",
          .train = make_set(form, images, kTrainPart),
          .test = make_set(form, test, kTestPart),
          .shift = 128,
          .scale = 1.0F / 64};
}

}  // namespace fluentps::train
