/// What a checkpoint keeps of one rank.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fluentps {

/// Named arrays and numbers: views into their owner, written from and read back into.
struct State {
  std::vector<std::pair<std::string, std::span<float>>> arrays;
  std::vector<std::pair<std::string, double*>> numbers;
};

}  // namespace fluentps
