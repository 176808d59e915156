/// Events per second of the bare controller on one core. One event is a push or a pull; its grants are taken each time.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "sync/controller.hpp"

namespace {

using namespace fluentps;

constexpr Iteration kRounds = 64;

/// All workers push and pull in rounds, in an order that differs from round to round; worker 0 every third round only,
/// so that the others run into the bound. A worker that waits skips its turn.
class Workers {
 public:
  Workers(const char* sync, Release release, std::uint32_t workers)
      : controller_({.workers = workers, .release = release}, SyncPlan(sync, workers, 1), ServerIndex{0}),
        next_(workers, 0),
        waits_(workers, 0) {}

  std::int64_t round(Iteration number) {
    const auto workers = static_cast<std::uint32_t>(next_.size());
    std::int64_t events = 0;
    for (std::uint32_t turn = 0; turn < workers; ++turn) {
      const auto w = (turn * 17 + static_cast<std::uint32_t>(number)) % workers;
      if (waits_[w] != 0 || (w == 0 && number % 3 != 0)) continue;
      step(w, number);
      events += 2;
    }
    return events;
  }

 private:
  void step(std::uint32_t w, Iteration now_ns) {
    const auto i = next_[w]++;
    controller_.push({w}, i, now_ns);
    wake();
    waits_[w] = 1;
    controller_.pull({w}, i, now_ns);
    wake();
  }
  void wake() {
    for (const auto& grant : controller_.take_grants()) waits_[grant.worker.value] = 0;
  }

  Controller controller_;
  std::vector<Iteration> next_;
  std::vector<std::uint8_t> waits_;
};

void controller(benchmark::State& state, const char* sync, Release release) {
  Workers workers(sync, release, static_cast<std::uint32_t>(state.range(0)));
  std::int64_t events = 0;
  Iteration number = 0;
  for (auto _ : state)
    for (Iteration k = 0; k < kRounds; ++k) events += workers.round(number++);
  state.SetItemsProcessed(events);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("N")->Arg(64)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(controller, bsp, "bsp", Release::kLazy)->Apply(sizes);
BENCHMARK_CAPTURE(controller, asp, "asp", Release::kLazy)->Apply(sizes);
BENCHMARK_CAPTURE(controller, ssp_soft, "ssp:s=3", Release::kSoft)->Apply(sizes);
BENCHMARK_CAPTURE(controller, ssp_lazy, "ssp:s=3", Release::kLazy)->Apply(sizes);
BENCHMARK_CAPTURE(controller, pssp_lazy, "pssp:s=3,c=0.1", Release::kLazy)->Apply(sizes);
BENCHMARK_CAPTURE(controller, dssp_soft, "dssp:low=2,high=6", Release::kSoft)->Apply(sizes);
BENCHMARK_CAPTURE(controller, psp_soft, "psp:beta=4,s=3", Release::kSoft)->Apply(sizes);
BENCHMARK_CAPTURE(controller, drop, "drop:n=48", Release::kLazy)->Apply(sizes);
BENCHMARK_CAPTURE(controller, switches, "bsp; @100 ssp:s=3; @1000000000 asp", Release::kSoft)->Apply(sizes);

}  // namespace
