/// What a checkpoint reads and writes, of arrays that the host may not be able to touch.
#pragma once

#include <vector>

#include "fluentps/state.hpp"
#include "shard/shard_memory.hpp"

namespace fluentps {

class StateCopies {
 public:
  /// `state`, whose arrays lie in `memory`, for the host: as it is, or with copies that are valid until the next call.
  State on_host(ShardMemory& memory, State state);
  /// The host has written into what on_host gave: takes it over.
  void adopt(ShardMemory& memory);

 private:
  struct Copy {
    std::span<float> original;
    std::vector<float> values;
  };
  std::vector<Copy> copies_;
};

}  // namespace fluentps
