#include "ps/ordered_sum.hpp"

#include <algorithm>
#include <limits>

#include "ps/chunks.hpp"
#include "shard/shard_memory.hpp"

namespace fluentps {
namespace {

constexpr Iteration kNever = std::numeric_limits<Iteration>::max();

}  // namespace

OrderedSum::OrderedSum(ShardMemory& memory, std::span<float> weights, std::uint32_t workers, std::uint32_t chunks,
                       std::int64_t chunk_elements, Commit commit)
    : memory_(memory),
      weights_(weights),
      workers_(workers),
      chunks_(chunks),
      chunk_elements_(chunk_elements),
      commit_(std::move(commit)),
      scale_(1.0F / static_cast<float>(workers)),
      left_from_(workers, kNever),
      taken_(workers, 0),
      position_(workers, 0) {}

void OrderedSum::begin(Iteration iteration) {
  iteration_ = iteration;
  applied_ = 0;
  std::fill(taken_.begin(), taken_.end(), 0);
  find_contributors();
  if (sum_.empty() && (workers_ > 1 || commit_)) sum_ = memory_.allocate(weights_.size());
}

void OrderedSum::find_contributors() {
  contributors_.clear();
  for (std::uint32_t w = 0; w < workers_; ++w) {
    if (left_from_[w] <= *iteration_) continue;
    position_[w] = static_cast<std::uint32_t>(contributors_.size());
    contributors_.push_back(w);
  }
}

std::span<float> OrderedSum::part(std::span<float> of, std::uint32_t chunk) const {
  return chunk_part(of, chunk_elements_, chunk);
}

Taken OrderedSum::take(const UpdateChunk& chunk) {
  if (!iteration_) begin(chunk.iteration);
  if (chunk.iteration != *iteration_) return Taken::kBlocked;
  const auto worker = chunk.worker.value;
  const auto position = position_[worker];
  if (position > 0 && taken_[contributors_[position - 1]] <= chunk.index) return Taken::kBlocked;

  const bool first = position == 0;
  const bool last = position + 1 == contributors_.size() && !commit_;
  if (first && last) {
    passes::apply(memory_, part(weights_, chunk.index), chunk.values, scale_);
  } else if (first) {
    passes::store(memory_, part(sum_, chunk.index), chunk.values);
  } else if (last) {
    passes::apply_sum(memory_, part(weights_, chunk.index), part(sum_, chunk.index), chunk.values, scale_);
  } else {
    passes::add(memory_, part(sum_, chunk.index), chunk.values);
  }
  lr_ = chunk.lr;
  ++taken_[worker];
  if (last) ++applied_;
  settle();
  return Taken::kTaken;
}

/// Applies what every contributor is in but nobody applied: the last contributor left, or an optimizer waits for all.
void OrderedSum::settle() {
  if (contributors_.empty()) {
    iteration_.reset();
    return;
  }
  const auto common = taken_[contributors_.back()];
  if (commit_) {
    if (common < chunks_) return;
    commit_(sum_, scale_, lr_);
    applied_ = chunks_;
  }
  for (; applied_ < common; ++applied_) passes::apply(memory_, part(weights_, applied_), part(sum_, applied_), scale_);
  if (applied_ == chunks_) complete();
}

void OrderedSum::complete() {
  iteration_.reset();
  ++completed_;
}

void OrderedSum::leave(WorkerIndex worker, Iteration from) {
  left_from_[worker.value] = from;
  if (!iteration_ || from > *iteration_) return;
  find_contributors();
  settle();
}

std::optional<WorkerIndex> OrderedSum::successor(WorkerIndex worker) const {
  if (!iteration_ || left_from_[worker.value] <= *iteration_) return std::nullopt;
  const auto next = position_[worker.value] + 1;
  if (next >= contributors_.size()) return std::nullopt;
  return WorkerIndex{contributors_[next]};
}

}  // namespace fluentps
