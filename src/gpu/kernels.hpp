/// Launches of the kernels. All arrays lie on the current device; nothing is waited for.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "shard/pass.hpp"

namespace fluentps {

/// Any alignment: where all arrays are misaligned alike, the elements up to the next 16 bytes (8 of halves) and the
/// tail go one by one and all others four at a time; else all go one by one. Throws CudaError.
void launch_pass(const Pass& pass, cudaStream_t stream);

/// Blocks of the first kernel of launch_squared_norm, and so doubles of its `partial`.
inline constexpr int kNormBlocks = 256;

/// *result := sum of values[j]^2, in double, added in an order that depends on the length only: the same bits each
/// time, though not those of the host's order. `partial`: kNormBlocks doubles, used until the second kernel has ended.
void launch_squared_norm(std::span<const float> values, double* partial, double* result, cudaStream_t stream);

}  // namespace fluentps
