/// The loops over shards: each passes over memory once, vectorised. The bits do not depend on the machine.
///
/// Lengths must agree (std::invalid_argument), ranges must not overlap, any alignment.
#pragma once

#include <span>

namespace fluentps::kernels {

/// sum := u
void store(std::span<float> sum, std::span<const float> u);
/// sum += u
void add(std::span<float> sum, std::span<const float> u);
/// w += scale * u
void apply(std::span<float> w, std::span<const float> u, float scale);
/// w += scale * (sum + u): the last contribution of an iteration, without writing the sum back.
void apply_sum(std::span<float> w, std::span<const float> sum, std::span<const float> u, float scale);

/// Whether no element is infinite or NaN.
bool all_finite(std::span<const float> values);

}  // namespace fluentps::kernels
