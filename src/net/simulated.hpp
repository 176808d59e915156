/// What differs in the programs of `make sim`, which run on a simulated cluster in simulated time (docs/simulation.md).
#pragma once

#include <cstdint>

namespace fluentps {

#ifdef FLUENTPS_SIMULATED
inline constexpr bool kSimulated = true;
#else
inline constexpr bool kSimulated = false;
#endif

/// How long a rank waits for a message before it looks after its trace and its stall clock. In simulated time nobody
/// stalls without the simulator's noticing, and each look would cost real time: 31 years.
inline constexpr std::int64_t kLookAround_ns = kSimulated ? 1'000'000'000'000'000'000 : 200'000'000;

}  // namespace fluentps
