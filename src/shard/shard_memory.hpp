/// Where the vectors of a shard lie and what passes over them: the host's memory, or a device's. A server and an update
/// rule know their vectors only through it. Plain C++.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "shard/pass.hpp"

namespace fluentps {

class ShardMemory {
 public:
  virtual ~ShardMemory() = default;
  /// n float32, all 0, 16-byte aligned at least. Belongs to this memory and is freed with it. Only passes and copies
  /// touch it, unless on_host().
  virtual std::span<float> allocate(std::size_t n) = 0;
  /// Whether the host reads and writes the arrays as its own.
  virtual bool on_host() const = 0;
  /// Passes run one after the other; this may return before its own has ended. Arrays are of this memory.
  virtual void run(const Pass& pass) = 0;
  /// The squared norm of each part, in double. Waits for it.
  virtual std::vector<double> squared_norms(std::span<const std::span<const float>> parts) = 0;
  /// Whether no element is infinite or NaN. Waits for it.
  virtual bool all_finite(std::span<const float> values) = 0;
  /// Copies into this memory, after all passes so far; returns when `host` may be changed.
  virtual void write(std::span<float> to, std::span<const float> host) = 0;
  /// Copies out of this memory, after all passes so far; returns when it is done.
  virtual void read(std::span<const float> from, std::span<float> host) = 0;
  /// Returns when all passes have ended.
  virtual void finish() = 0;
};

/// The host's memory; passes end before run returns, vectorised, with the bits of kernels.hpp.
class HostMemory final : public ShardMemory {
 public:
  std::span<float> allocate(std::size_t n) override;
  bool on_host() const override { return true; }
  void run(const Pass& pass) override;
  std::vector<double> squared_norms(std::span<const std::span<const float>> parts) override;
  bool all_finite(std::span<const float> values) override;
  void write(std::span<float> to, std::span<const float> host) override;
  void read(std::span<const float> from, std::span<float> host) override;
  void finish() override {}

 private:
  std::vector<std::vector<float>> arrays_;
};

/// sum := u and so on, as in kernels.hpp. Lengths must agree (std::invalid_argument).
namespace passes {
void store(ShardMemory& memory, std::span<float> sum, std::span<const float> u);
void add(ShardMemory& memory, std::span<float> sum, std::span<const float> u);
void apply(ShardMemory& memory, std::span<float> w, std::span<const float> u, float scale);
/// sum := ((t0 + t1) + t2) + ...; t0 may be `sum` itself.
void total(ShardMemory& memory, std::span<float> sum, std::span<const std::span<const float>> terms);
/// w += scale * ((t0 + t1) + ...), of 1 to kernels::kMostTerms terms.
void apply_sum(ShardMemory& memory, std::span<float> w, std::span<const std::span<const float>> terms, float scale);
void fill(ShardMemory& memory, std::span<float> values, float value);
void scale(ShardMemory& memory, std::span<float> values, float scale);
}  // namespace passes

}  // namespace fluentps
