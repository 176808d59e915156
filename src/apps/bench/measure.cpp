#include "apps/bench/measure.hpp"

#include <algorithm>
#include <cmath>

#include "net/mpi_error.hpp"

namespace fluentps::app {
namespace {

struct WorkerTimes {
  double seconds = 0;
  double push_s = 0, wait_s = 0, pull_s = 0;
  std::vector<double> latencies_s;
};

WorkerTimes run_worker(Worker& worker, MPI_Comm workers, std::int64_t n, int repeat) {
  std::vector<float> weights(static_cast<std::size_t>(n), 0.0F);
  const std::vector<float> update(weights.size(), 1e-6F);
  worker.initialize(weights);
  for (int k = 0; k < std::max(1, repeat / 10); ++k) worker.push_pull(update, weights);
  FLUENTPS_MPI(MPI_Barrier(workers));
  WorkerTimes times;
  const double begin = MPI_Wtime();
  double mark = begin;
  for (int k = 0; k < repeat; ++k) {
    worker.push_pull(update, weights);
    const auto& transfer = worker.last_transfer();
    times.push_s += static_cast<double>(transfer.push_ns) * 1e-9;
    times.wait_s += static_cast<double>(transfer.wait_ns) * 1e-9;
    times.pull_s += static_cast<double>(transfer.pull_ns) * 1e-9;
    const double now = MPI_Wtime();
    times.latencies_s.push_back(now - mark);
    mark = now;
  }
  times.seconds = mark - begin;
  return times;
}

double over_workers(double value, MPI_Op op, MPI_Comm workers) {
  double result = 0;
  FLUENTPS_MPI(MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, op, workers));
  return result;
}

}  // namespace

double Measurement::percentile_s(double percent) const {
  if (latencies_s.empty()) return 0;
  auto sorted = latencies_s;
  std::sort(sorted.begin(), sorted.end());
  const auto at = static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(at, 1, sorted.size()) - 1];
}

Measurement measure_push_pull(const SessionOptions& given, std::int64_t parameters, int repeat) {
  auto options = given;
  options.tensors = {{"w", {parameters}}};
  Session session(MPI_COMM_WORLD, options);
  Measurement result;
  result.parameters = parameters;
  result.repeat = repeat;
  result.transport = session.transport();
  session.run([&](Worker& worker) {
    const auto workers = session.own();
    const auto times = run_worker(worker, workers, parameters, repeat);
    result.seconds = over_workers(times.seconds, MPI_MAX, workers);
    const double total = over_workers(times.seconds, MPI_SUM, workers);
    result.push_share = over_workers(times.push_s, MPI_SUM, workers) / total;
    result.wait_share = over_workers(times.wait_s, MPI_SUM, workers) / total;
    result.pull_share = over_workers(times.pull_s, MPI_SUM, workers) / total;
    result.latencies_s.resize(static_cast<std::size_t>(repeat) * worker.workers());
    FLUENTPS_MPI(MPI_Gather(times.latencies_s.data(), repeat, MPI_DOUBLE, result.latencies_s.data(), repeat, MPI_DOUBLE,
                            0, workers));
  });
  session.close_trace();
  return result;
}

}  // namespace fluentps::app
