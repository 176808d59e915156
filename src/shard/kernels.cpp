/// The loops over shards, compiled for AVX2 and for any x86-64, chosen at load time.
///
/// Element-wise multiplications and additions round the same in every vector width; only a fused multiply-add would
/// not, which -ffp-contract=off rules out (and "avx2" does not include it).
#include "shard/kernels.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "shard/elementwise.hpp"

// Sanitizers instrument the resolvers, which run before their run-time library is ready.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FLUENTPS_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define FLUENTPS_CLONES
#endif

namespace fluentps::kernels {
namespace {

FLUENTPS_CLONES void add_loop(float* __restrict sum, const float* __restrict u, std::size_t n) {
  const elementwise::Add f;
  for (std::size_t j = 0; j < n; ++j) f(sum[j], u[j]);
}

FLUENTPS_CLONES void apply_loop(float* __restrict w, const float* __restrict u, float scale, std::size_t n) {
  const elementwise::Apply f{scale};
  for (std::size_t j = 0; j < n; ++j) f(w[j], u[j]);
}

template <typename... Terms>
inline __attribute__((always_inline)) void apply_terms(float* __restrict w, float scale, std::size_t n,
                                                       Terms... terms) {
  const elementwise::ApplySum f{scale};
#pragma GCC ivdep
  for (std::size_t j = 0; j < n; ++j) f(w[j], terms[j]...);
}

FLUENTPS_CLONES void apply_sum_loop(float* w, const float* const* t, std::size_t terms, float scale, std::size_t n) {
  static_assert(kMostTerms == 5);
  if (terms == 2) apply_terms(w, scale, n, t[0], t[1]);
  if (terms == 3) apply_terms(w, scale, n, t[0], t[1], t[2]);
  if (terms == 4) apply_terms(w, scale, n, t[0], t[1], t[2], t[3]);
  if (terms == 5) apply_terms(w, scale, n, t[0], t[1], t[2], t[3], t[4]);
}

/// Integer arithmetic, so that no element's value can hide another's: all exponent bits set means infinite or NaN.
FLUENTPS_CLONES bool all_finite_loop(const std::uint32_t* __restrict bits, std::size_t n) {
  constexpr std::uint32_t kExponent = 0x7F800000U;
  std::uint32_t bad = 0;
  for (std::size_t j = 0; j < n; ++j) bad |= (bits[j] & kExponent) == kExponent ? 1U : 0U;
  return bad == 0;
}

void require_same(std::size_t a, std::size_t b) {
  if (a != b) throw std::invalid_argument(fmt::format("kernel called with ranges of {} and {} elements", a, b));
}

}  // namespace

void store(std::span<float> sum, std::span<const float> u) {
  require_same(sum.size(), u.size());
  if (!u.empty()) std::memcpy(sum.data(), u.data(), u.size_bytes());
}

void add(std::span<float> sum, std::span<const float> u) {
  require_same(sum.size(), u.size());
  add_loop(sum.data(), u.data(), u.size());
}

void apply(std::span<float> w, std::span<const float> u, float scale) {
  require_same(w.size(), u.size());
  apply_loop(w.data(), u.data(), scale, u.size());
}

void apply_sum(std::span<float> w, std::span<const std::span<const float>> terms, float scale) {
  if (terms.size() < 2 || terms.size() > kMostTerms)
    throw std::invalid_argument(fmt::format("a sum of {} terms; 2 to {} can be applied", terms.size(), kMostTerms));
  std::array<const float*, kMostTerms> data{};
  for (std::size_t k = 0; k < terms.size(); ++k) {
    require_same(w.size(), terms[k].size());
    data[k] = terms[k].data();
  }
  apply_sum_loop(w.data(), data.data(), terms.size(), scale, w.size());
}

bool all_finite(std::span<const float> values) {
  return all_finite_loop(reinterpret_cast<const std::uint32_t*>(values.data()), values.size());
}

}  // namespace fluentps::kernels
