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
                       std::int64_t chunk_elements, std::uint32_t hold, Commit commit)
    : memory_(memory),
      weights_(weights),
      workers_(workers),
      chunks_(chunks),
      chunk_elements_(chunk_elements),
      commit_(std::move(commit)),
      scale_(1.0F / static_cast<float>(workers)),
      hold_(hold),
      left_from_(workers, kNever),
      taken_(workers, 0),
      held_(workers),
      position_(workers, 0) {}

void OrderedSum::begin(Iteration iteration) {
  iteration_ = iteration;
  applied_ = 0;
  std::fill(taken_.begin(), taken_.end(), 0);
  find_contributors();
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

std::span<float> OrderedSum::sum(std::uint32_t chunk) {
  if (sum_.size() != weights_.size()) sum_ = memory_.allocate(weights_.size());
  return part(sum_, chunk);
}

Taken OrderedSum::take(const UpdateChunk& chunk) {
  if (!iteration_) begin(chunk.iteration);
  if (chunk.iteration != *iteration_) return Taken::kBlocked;
  const auto worker = chunk.worker.value;
  const auto position = position_[worker];
  if (position > 0 && taken_[contributors_[position - 1]] <= chunk.index) return Taken::kBlocked;
  lr_ = chunk.lr;
  ++taken_[worker];
  held_[worker].push_back(chunk.values);
  if (held(chunk.index, position) >= kBatch)
    let_go(chunk.worker);
  else if (held_[worker].size() > hold_)
    use_oldest(chunk.worker);
  settle();
  return Taken::kHeld;
}

void OrderedSum::let_go(WorkerIndex worker) {
  while (!held_[worker.value].empty()) use_oldest(worker);
}

void OrderedSum::use_oldest(WorkerIndex worker) { use(used_of(worker.value), position_[worker.value]); }

/// Chunks of this worker that are in the sum or in the weights.
std::uint32_t OrderedSum::used_of(std::uint32_t worker) const {
  return taken_[worker] - static_cast<std::uint32_t>(held_[worker].size());
}

/// How many of the contributors up to `position` have their chunk held.
std::size_t OrderedSum::held(std::uint32_t chunk, std::uint32_t position) const {
  std::size_t count = 0;
  for (auto p = position + 1; p > 0 && used_of(contributors_[p - 1]) <= chunk; --p) ++count;
  return count;
}

/// Adds what is held of this chunk by the contributors up to `position`; those before them are in the sum already.
void OrderedSum::use(std::uint32_t chunk, std::uint32_t position) {
  const auto first = position + 1 - static_cast<std::uint32_t>(held(chunk, position));
  const bool last = position + 1 == contributors_.size() && !commit_;
  terms_.clear();
  if (first > 0) terms_.push_back(sum(chunk));
  for (auto p = first; p <= position; ++p) {
    auto& held = held_[contributors_[p]];
    terms_.push_back(held.front());
    held.pop_front();
    used_.push_back(WorkerIndex{contributors_[p]});
  }
  if (last) {
    passes::apply_sum(memory_, part(weights_, chunk), terms_, scale_);
    ++applied_;
  } else {
    passes::total(memory_, sum(chunk), terms_);
  }
}

std::optional<WorkerIndex> OrderedSum::next_used() {
  if (used_.empty()) return std::nullopt;
  const auto worker = used_.back();
  used_.pop_back();
  return worker;
}

/// Applies what every contributor is in but nobody applied: the last contributor left, or an optimizer waits for all.
void OrderedSum::settle() {
  if (contributors_.empty()) {
    iteration_.reset();
    return;
  }
  const WorkerIndex last{contributors_.back()};
  const auto common = taken_[last.value];
  if (commit_) {
    if (common < chunks_) return;
    let_go(last);
    commit_(sum_, scale_, lr_);
    applied_ = chunks_;
  } else {
    for (; applied_ < used_of(last.value); ++applied_)
      passes::apply(memory_, part(weights_, applied_), sum(applied_), scale_);
    let_go(last);
  }
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
