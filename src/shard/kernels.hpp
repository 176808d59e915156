/// The loops over shards: each passes over memory once, vectorised. The bits do not depend on the machine.
///
/// Lengths must agree (std::invalid_argument), ranges must not overlap, any alignment.
#pragma once

#include <cstddef>
#include <span>

namespace fluentps::kernels {

/// sum := u
void store(std::span<float> sum, std::span<const float> u);
/// sum += u
void add(std::span<float> sum, std::span<const float> u);
/// w += scale * u
void apply(std::span<float> w, std::span<const float> u, float scale);
/// Terms of apply_sum, at most.
constexpr std::size_t kMostTerms = 5;
/// w += scale * ((t0 + t1) + ...), of two terms or more: the end of an iteration, without writing its sum.
void apply_sum(std::span<float> w, std::span<const std::span<const float>> terms, float scale);

/// Whether no element is infinite or NaN.
bool all_finite(std::span<const float> values);

}  // namespace fluentps::kernels
