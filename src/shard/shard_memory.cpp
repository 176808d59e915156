#include "shard/shard_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "shard/kernels.hpp"

namespace fluentps {
namespace {

void require_same(std::size_t a, std::size_t b) {
  if (a != b) throw std::invalid_argument(fmt::format("pass over ranges of {} and {} elements", a, b));
}

template <typename T>
std::span<T> part(T* values, std::int64_t n) {
  return {values, static_cast<std::size_t>(n)};
}

/// The loops that a server's speed hangs on have versions for wider vectors; all others are compiled once.
struct RunOnHost {
  void operator()(const PassOf<elementwise::Store, float, const float>& pass) const {
    kernels::store(part(std::get<0>(pass.arrays), pass.n), part(std::get<1>(pass.arrays), pass.n));
  }
  void operator()(const PassOf<elementwise::Add, float, const float>& pass) const {
    kernels::add(part(std::get<0>(pass.arrays), pass.n), part(std::get<1>(pass.arrays), pass.n));
  }
  void operator()(const PassOf<elementwise::Apply, float, const float>& pass) const {
    kernels::apply(part(std::get<0>(pass.arrays), pass.n), part(std::get<1>(pass.arrays), pass.n), pass.f.scale);
  }
  template <typename... T>
  void operator()(const PassOf<elementwise::ApplySum, float, T...>& pass) const {
    std::apply(
        [&pass](float* w, auto*... terms) {
          const std::array<std::span<const float>, sizeof...(terms)> parts{part(terms, pass.n)...};
          kernels::apply_sum(part(w, pass.n), parts, pass.f.scale);
        },
        pass.arrays);
  }
  template <typename F, typename... T>
  void operator()(const PassOf<F, T...>& pass) const {
    run_on_host(pass);
  }
};

/// In double, in eight interleaved sums of fixed order: as fast as vector code, yet the value depends neither on the
/// machine nor on the compiler.
double squared_norm(std::span<const float> values) {
  constexpr std::size_t kSums = 8;
  const elementwise::Square square;
  double sums[kSums] = {};
  const std::size_t whole = values.size() / kSums * kSums;
  for (std::size_t j = 0; j < whole; j += kSums)
    for (std::size_t k = 0; k < kSums; ++k) sums[k] += square(values[j + k]);
  double sum = 0;
  for (const double each : sums) sum += each;
  for (std::size_t j = whole; j < values.size(); ++j) sum += square(values[j]);
  return sum;
}

}  // namespace

std::span<float> HostMemory::allocate(std::size_t n) { return arrays_.emplace_back(n); }

void HostMemory::run(const Pass& pass) { std::visit(RunOnHost{}, pass); }

std::vector<double> HostMemory::squared_norms(std::span<const std::span<const float>> parts) {
  std::vector<double> norms;
  for (const auto& each : parts) norms.push_back(squared_norm(each));
  return norms;
}

bool HostMemory::all_finite(std::span<const float> values) { return kernels::all_finite(values); }

void HostMemory::write(std::span<float> to, std::span<const float> host) {
  require_same(to.size(), host.size());
  std::copy(host.begin(), host.end(), to.begin());
}

void HostMemory::read(std::span<const float> from, std::span<float> host) {
  require_same(from.size(), host.size());
  std::copy(from.begin(), from.end(), host.begin());
}

namespace passes {

void store(ShardMemory& memory, std::span<float> sum, std::span<const float> u) {
  require_same(sum.size(), u.size());
  memory.run(make_pass(elementwise::Store{}, u.size(), sum.data(), u.data()));
}

void add(ShardMemory& memory, std::span<float> sum, std::span<const float> u) {
  require_same(sum.size(), u.size());
  memory.run(make_pass(elementwise::Add{}, u.size(), sum.data(), u.data()));
}

void apply(ShardMemory& memory, std::span<float> w, std::span<const float> u, float scale) {
  require_same(w.size(), u.size());
  memory.run(make_pass(elementwise::Apply{scale}, u.size(), w.data(), u.data()));
}

void total(ShardMemory& memory, std::span<float> sum, std::span<const std::span<const float>> terms) {
  if (terms[0].data() != sum.data()) store(memory, sum, terms[0]);
  for (const auto& term : terms.subspan(1)) add(memory, sum, term);
}

void apply_sum(ShardMemory& memory, std::span<float> w, std::span<const std::span<const float>> terms, float scale) {
  for (const auto& each : terms) require_same(w.size(), each.size());
  const auto run = [&](auto... term) {
    memory.run(make_pass(elementwise::ApplySum{scale}, w.size(), w.data(), term.data()...));
  };
  static_assert(kernels::kMostTerms == 5);
  switch (terms.size()) {
    case 1:
      return apply(memory, w, terms[0], scale);
    case 2:
      return run(terms[0], terms[1]);
    case 3:
      return run(terms[0], terms[1], terms[2]);
    case 4:
      return run(terms[0], terms[1], terms[2], terms[3]);
    case 5:
      return run(terms[0], terms[1], terms[2], terms[3], terms[4]);
    default:
      throw std::invalid_argument(fmt::format("pass over a sum of {} terms", terms.size()));
  }
}

void fill(ShardMemory& memory, std::span<float> values, float value) {
  memory.run(make_pass(elementwise::Fill{value}, values.size(), values.data()));
}

void scale(ShardMemory& memory, std::span<float> values, float scale) {
  memory.run(make_pass(elementwise::Scale{scale}, values.size(), values.data()));
}

}  // namespace passes
}  // namespace fluentps
