#include "ps/arrival_sum.hpp"

#include <algorithm>

#include "ps/chunks.hpp"
#include "shard/shard_memory.hpp"

namespace fluentps {

ArrivalSum::ArrivalSum(ShardMemory& memory, std::span<float> weights, std::uint32_t workers, std::uint32_t chunks,
                       std::int64_t chunk_elements, Commit commit)
    : memory_(memory),
      weights_(weights),
      chunks_(chunks),
      chunk_elements_(chunk_elements),
      commit_(std::move(commit)),
      open_of_(workers, 0),
      additions_(chunks, 0) {}

std::span<float> ArrivalSum::part(std::span<float> of, std::uint32_t chunk) const {
  return chunk_part(of, chunk_elements_, chunk);
}

Taken ArrivalSum::take(const UpdateChunk& chunk, std::uint32_t wanted, bool writable) {
  auto& open = open_of_[chunk.worker.value];
  const bool admitted = open != 0;
  if (!admitted && open_ + finished_ >= wanted) return Taken::kBlocked;
  const bool completes = chunk.last && finished_ + 1 >= wanted && open_ == (admitted ? 1U : 0U);
  if (completes && !writable) return Taken::kBlocked;
  if (!admitted) {
    open = 1;
    ++open_;
  }
  lr_ = chunk.lr;
  if (sum_.empty()) sum_ = memory_.allocate(weights_.size());
  auto sum = part(sum_, chunk.index);
  if (additions_[chunk.index]++ == 0) passes::fill(memory_, sum, 0);
  passes::apply(memory_, sum, chunk.values, chunk.factor);
  if (chunk.last) {
    open = 0;
    --open_;
    ++finished_;
    if (completes) apply();
  }
  return Taken::kTaken;
}

void ArrivalSum::apply() {
  if (finished_ == 0) return;
  const float scale = 1.0F / static_cast<float>(finished_);
  if (commit_)
    commit_(sum_, scale, lr_);
  else
    passes::apply(memory_, weights_, sum_, scale);
  std::fill(additions_.begin(), additions_.end(), 0);
  finished_ = 0;
  ++completed_;
}

}  // namespace fluentps
