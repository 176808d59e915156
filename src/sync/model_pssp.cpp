/// Probabilistic SSP (Yao, Wu, Wang, "FluentPS", CLUSTER 2019): at the bound of SSP a worker is paused with some
/// probability only. Constant: c. Dynamic: alpha / (1 + e^(s-k)), k = i - V, so the more likely the further ahead.
#include <fmt/format.h>

#include <cmath>

#include "sync/arguments.hpp"
#include "sync/models.hpp"

namespace fluentps {
namespace {

constexpr std::string_view kSignature = "pssp:s=S,c=C|alpha=A";

/// What both have in common. The coin is drawn by may_pull, once; a paused pull waits for the bound of SSP.
class Pssp : public SyncModel {
 public:
  explicit Pssp(std::int64_t staleness) : staleness_(staleness) {}
  bool may_pull(const SyncState& state, WorkerIndex worker, Iteration i) const final {
    return may_release(state, worker, i) || state.coin(worker, i) > pause_probability(i - state.v());
  }
  bool may_release(const SyncState& state, WorkerIndex, Iteration i) const final { return i < state.v() + staleness_; }
  std::optional<Iteration> release_at(const SyncState&, WorkerIndex, Iteration i) const final {
    return i - staleness_ + 1;
  }

 protected:
  virtual double pause_probability(Iteration gap) const = 0;
  std::int64_t staleness_;
};

class ConstantPssp final : public Pssp {
 public:
  ConstantPssp(std::int64_t staleness, double c) : Pssp(staleness), c_(c) {}
  std::string spec() const override { return fmt::format("pssp:s={},c={}", staleness_, c_); }
  double pause_probability(Iteration) const override { return c_; }
  /// With s=0 and c=1 it is bsp, to the bit.
  Aggregation aggregation() const override {
    return {.kind = staleness_ == 0 && c_ == 1 ? Aggregation::Kind::kOrderedSum : Aggregation::Kind::kImmediate};
  }

 private:
  double c_;
};

class DynamicPssp final : public Pssp {
 public:
  DynamicPssp(std::int64_t staleness, double alpha) : Pssp(staleness), alpha_(alpha) {}
  std::string spec() const override { return fmt::format("pssp:s={},alpha={}", staleness_, alpha_); }
  double pause_probability(Iteration gap) const override {
    return alpha_ / (1 + std::exp(static_cast<double>(staleness_ - gap)));
  }

 private:
  double alpha_;
};

std::unique_ptr<SyncModel> make(const SyncArguments& arguments, std::uint32_t) {
  ArgumentReader reader(kSignature, arguments);
  const auto staleness = reader.integer("s", 0, kMaxStaleness);
  const bool constant = reader.first_of("c", "alpha");
  const double probability = reader.number(constant ? "c" : "alpha", 0, 1);
  reader.finish();
  if (constant) return std::make_unique<ConstantPssp>(staleness, probability);
  return std::make_unique<DynamicPssp>(staleness, probability);
}

}  // namespace

SyncModelEntry pssp_entry() {
  return {.name = "pssp",
          .signature = std::string(kSignature),
          .answers = "i < V+s, or coin > c; with alpha: or coin > A/(1+e^(s-k)), k = i-V",
          .advances = "Count[V] == N",
          .source = "Yao, Wu, Wang (FluentPS), CLUSTER 2019",
          .make = make};
}

}  // namespace fluentps
