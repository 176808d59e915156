/// Order and preparation of the training images.
#include "train/batches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fluentps/error.hpp"
#include "text/words.hpp"
#include "train/random.hpp"

namespace fluentps::train {

DataOrder::DataOrder(const Shape& shape, std::uint64_t seed) : shape_(shape), seed_(seed) {
  if (shape.workers == 0 || shape.batch_size == 0 || shape.batch_size > shape.images / shape.workers) {
    throw UsageError(fmt::format(
        "a global batch of {} workers x {} images does not fit the {} training images: give "
        "each worker from 1 to {} by --batch-size",
        shape.workers, shape.batch_size, shape.images, shape.images / std::max<std::int64_t>(shape.workers, 1)));
  }
  iterations_per_epoch_ = shape.images / (std::int64_t{shape.workers} * shape.batch_size);
}

/// Fisher and Yates, written out because std::shuffle differs between libraries.
void DataOrder::shuffle(Iteration epoch) {
  epoch_ = epoch;
  permutation_.resize(static_cast<std::size_t>(shape_.images));
  std::iota(permutation_.begin(), permutation_.end(), 0U);
  Random random{kOrderStream, seed_, static_cast<std::uint64_t>(epoch)};
  for (std::size_t last = permutation_.size() - 1; last > 0; --last) {
    std::swap(permutation_[last], permutation_[random.below(last + 1)]);
  }
}

std::span<const std::uint32_t> DataOrder::part(Iteration t, WorkerIndex worker) {
  const Iteration epoch = t / iterations_per_epoch_;
  if (epoch != epoch_) shuffle(epoch);
  const std::int64_t global = std::int64_t{shape_.workers} * shape_.batch_size;
  const std::int64_t first = t % iterations_per_epoch_ * global + std::int64_t{worker.value} * shape_.batch_size;
  return std::span(permutation_).subspan(static_cast<std::size_t>(first), shape_.batch_size);
}

Augmentation parse_augmentation(const std::string& text, const std::string& dataset) {
  if (text == "auto") return {.flip = dataset.starts_with("cifar"), .crop = false};
  if (text == "none") return {};
  if (text == "flip") return {.flip = true, .crop = false};
  if (text == "crop") return {.flip = false, .crop = true};
  if (text == "flip+crop") return {.flip = true, .crop = true};
  const std::vector<std::string> valid = {"auto", "none", "flip", "crop", "flip+crop"};
  throw UsageError(fmt::format("augment: unknown value '{}', did you mean '{}'? Valid: {}", text,
                               nearest_name(text, valid), join_names(valid)));
}

void prepare_image(const DataSets& sets, const ImageSet& set, std::int64_t index, float* into) {
  const auto pixels = set.form.pixels();
  const std::uint8_t* image = set.pixels.data() + index * pixels;
  for (std::int64_t p = 0; p < pixels; ++p) into[p] = (static_cast<float>(image[p]) - sets.shift) * sets.scale;
}

void prepare_augmented(const DataSets& sets, std::int64_t index, Augmentation augmentation, const ImageKey& key,
                       float* into) {
  if (!augmentation.flip && !augmentation.crop) return prepare_image(sets, sets.train, index, into);
  constexpr std::int64_t kPadding = 4;
  Random random{kAugmentStream, key.seed, static_cast<std::uint64_t>(key.iteration), key.position};
  const bool flipped = augmentation.flip && random.uniform() < 0.5;
  const auto draw_shift = [&] { return static_cast<std::int64_t>(random.below(2 * kPadding + 1)) - kPadding; };
  const std::int64_t down = augmentation.crop ? draw_shift() : 0;
  const std::int64_t right = augmentation.crop ? draw_shift() : 0;
  const auto& form = sets.train.form;
  const std::uint8_t* image = sets.train.pixels.data() + index * form.pixels();
  for (std::int64_t c = 0; c < form.channels; ++c, image += form.height * form.width) {
    for (std::int64_t y = 0; y < form.height; ++y) {
      const std::int64_t from_y = y + down;
      for (std::int64_t x = 0; x < form.width; ++x) {
        const std::int64_t from_x = (flipped ? form.width - 1 - x : x) + right;
        const bool inside = from_y >= 0 && from_y < form.height && from_x >= 0 && from_x < form.width;
        *into++ = inside ? (static_cast<float>(image[from_y * form.width + from_x]) - sets.shift) * sets.scale : 0.0F;
      }
    }
  }
}

}  // namespace fluentps::train
