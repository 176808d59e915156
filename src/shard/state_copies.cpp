#include "shard/state_copies.hpp"

namespace fluentps {

State StateCopies::on_host(ShardMemory& memory, State state) {
  copies_.clear();
  if (memory.on_host()) return state;
  for (auto& [name, values] : state.arrays) {
    auto& copy = copies_.emplace_back(Copy{values, std::vector<float>(values.size())});
    memory.read(copy.original, copy.values);
    values = copy.values;
  }
  return state;
}

void StateCopies::adopt(ShardMemory& memory) {
  for (auto& copy : copies_) memory.write(copy.original, copy.values);
}

}  // namespace fluentps
