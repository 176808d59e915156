/// Partial barriers (Albrecht, Tuttle, Snoeren, Vahdat, "Loose synchronization for large-scale networked systems",
/// USENIX ATC 2006): the barrier opens when a fraction of the workers is there, or some time after the first.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sync/arguments.hpp"
#include "sync/models.hpp"

namespace fluentps {
namespace {

constexpr std::string_view kSignature = "partial:fraction=F|timeout_ms=T";

class Partial : public SyncModel {
 public:
  bool may_pull(const SyncState& state, WorkerIndex, Iteration i) const final { return i < state.v(); }
  std::optional<Iteration> release_at(const SyncState&, WorkerIndex, Iteration i) const final { return i + 1; }
};

class FractionPartial final : public Partial {
 public:
  explicit FractionPartial(double fraction) : fraction_(fraction) {}
  std::string spec() const override { return fmt::format("partial:fraction={}", fraction_); }
  bool may_advance(const SyncState& state) const override {
    return state.active_count(state.v()) >= wanted(state.active_workers());
  }

 private:
  /// The smallest whole number of workers >= F * active; the small term undoes rounding, as in 0.7 * 10 = 7.000..01.
  std::uint32_t wanted(std::uint32_t active) const {
    const auto least = static_cast<std::uint32_t>(std::ceil(fraction_ * active - 1e-9));
    return active == 0 ? 0 : std::max(1U, least);
  }
  double fraction_;
};

class TimeoutPartial final : public Partial {
 public:
  explicit TimeoutPartial(std::int64_t timeout_ms) : timeout_ms_(timeout_ms) {}
  std::string spec() const override { return fmt::format("partial:timeout_ms={}", timeout_ms_); }
  bool may_advance(const SyncState& state) const override {
    if (SyncModel::may_advance(state)) return true;
    const auto deadline = deadline_ns(state);
    return deadline && state.now_ns() >= *deadline;
  }
  std::optional<std::int64_t> deadline_ns(const SyncState& state) const override {
    const auto first = state.first_push_ns();
    if (!first) return std::nullopt;
    return *first + timeout_ms_ * 1'000'000;
  }

 private:
  std::int64_t timeout_ms_;
};

std::unique_ptr<SyncModel> make(const SyncArguments& arguments, std::uint32_t) {
  constexpr std::int64_t kDayMs = 86'400'000;
  ArgumentReader reader(kSignature, arguments);
  if (reader.first_of("fraction", "timeout_ms")) {
    const double fraction = reader.number("fraction", 0, 1);
    reader.finish();
    return std::make_unique<FractionPartial>(fraction);
  }
  const auto timeout_ms = reader.integer("timeout_ms", 0, kDayMs);
  reader.finish();
  return std::make_unique<TimeoutPartial>(timeout_ms);
}

}  // namespace

SyncModelEntry partial_entry() {
  return {.name = "partial",
          .signature = std::string(kSignature),
          .answers = "i < V",
          .advances = "Count[V] >= F*N, or T ms after the first push of V; later pushes are applied",
          .source = "Albrecht et al. (partial barriers), USENIX ATC 2006",
          .make = make};
}

}  // namespace fluentps
