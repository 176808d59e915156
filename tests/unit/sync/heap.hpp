/// Heap in use by this process, as the allocator counts it.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <vector>

namespace fluentps::test {

inline std::size_t heap_bytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// False where another allocator is in place, as under AddressSanitizer.
inline bool heap_is_counted() {
  const auto before = heap_bytes();
  const std::vector<char> block(1 << 20);
  return heap_bytes() >= before + block.size();
}

}  // namespace fluentps::test
