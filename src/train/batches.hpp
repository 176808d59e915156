/// Which images make up a worker's part of a global batch, and how they are prepared.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fluentps/types.hpp"
#include "train/dataset.hpp"

namespace fluentps::train {

/// Order of the training data. In every epoch global batch t is the next slice of that epoch's seeded permutation; a
/// batch never straddles an epoch, the remainder is left out. Worker w takes the w-th of N equal parts.
class DataOrder {
 public:
  struct Shape {
    std::int64_t images = 0;
    std::uint32_t workers = 1;
    std::uint32_t batch_size = 1;  ///< per worker
  };
  /// Throws UsageError when a global batch is larger than the data set.
  DataOrder(const Shape& shape, std::uint64_t seed);

  Iteration iterations_per_epoch() const { return iterations_per_epoch_; }
  /// Images of `worker` in global batch t, valid until the next call.
  std::span<const std::uint32_t> part(Iteration t, WorkerIndex worker);

 private:
  void shuffle(Iteration epoch);

  Shape shape_;
  std::uint64_t seed_;
  Iteration iterations_per_epoch_ = 0;
  Iteration epoch_ = -1;
  std::vector<std::uint32_t> permutation_;
};

/// How training images are changed at random: by (seed, iteration, position in the global batch), so that it depends on
/// nothing else, not on the number of workers either.
struct Augmentation {
  bool flip = false;  ///< left-right, with probability 1/2
  bool crop = false;  ///< 4 pixels of zeros added on every side, then a window of the old size
};
/// "auto" means flip for cifar10 and cifar100, else none. Throws UsageError.
Augmentation parse_augmentation(const std::string& text, const std::string& dataset);

struct ImageKey {
  std::uint64_t seed = 0;
  Iteration iteration = 0;
  std::uint64_t position = 0;  ///< in the global batch
};

/// Writes image `index` as (pixel - shift) * scale to `into`, form.pixels() float32. Zero padding is 0 after scaling.
void prepare_image(const DataSets& sets, const ImageSet& set, std::int64_t index, float* into);
/// The same for a training image, changed at random.
void prepare_augmented(const DataSets& sets, std::int64_t index, Augmentation augmentation, const ImageKey& key,
                       float* into);

}  // namespace fluentps::train
