/// One slot for each iteration in [begin, end), in a ring that grows with the longest window seen and never with the
/// number of iterations.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "fluentps/types.hpp"

namespace fluentps {

template <typename Slot>
class IterationWindow {
 public:
  explicit IterationWindow(Iteration begin = 0) : begin_(begin), end_(begin) {}
  Iteration begin() const { return begin_; }
  Iteration end() const { return end_; }
  bool contains(Iteration i) const { return i >= begin_ && i < end_; }
  /// i must be in the window.
  Slot& operator[](Iteration i) { return slots_[index(i)]; }
  const Slot& operator[](Iteration i) const { return slots_[index(i)]; }
  std::size_t capacity() const { return slots_.size(); }

  /// Makes the window reach past i.
  void reach(Iteration i) {
    if (i < end_) return;
    if (static_cast<std::size_t>(i + 1 - begin_) > slots_.size()) grow(static_cast<std::size_t>(i + 1 - begin_));
    end_ = i + 1;
  }
  /// Drops the first slot; the window must not be empty.
  void pop_front() {
    slots_[index(begin_)] = Slot{};
    ++begin_;
  }

 private:
  std::size_t index(Iteration i) const { return static_cast<std::size_t>(i) & (slots_.size() - 1); }

  void grow(std::size_t wanted) {
    std::size_t size = slots_.size();
    while (size < wanted) size *= 2;
    std::vector<Slot> larger(size);
    for (auto i = begin_; i < end_; ++i) larger[static_cast<std::size_t>(i) & (size - 1)] = std::move(slots_[index(i)]);
    slots_ = std::move(larger);
  }

  Iteration begin_;
  Iteration end_;
  std::vector<Slot> slots_ = std::vector<Slot>(4);  ///< the size is a power of two; slots outside the window are fresh
};

}  // namespace fluentps
