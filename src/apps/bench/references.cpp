#include "apps/bench/references.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "net/mpi_error.hpp"
#include "net/window.hpp"
#include "shard/kernels.hpp"
#include "shard/shard_map.hpp"

namespace fluentps::app {
namespace {

constexpr int kTag = 11;
constexpr std::int64_t kBandwidthElements = 1 << 24;  // 64 MiB a buffer: beyond the caches
constexpr double kGiga = 1e9;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Median seconds of `step` on this rank, after one warm-up.
double time_steps(int repeat, const std::function<void()>& step) {
  std::vector<double> seconds;
  step();
  for (int k = 0; k < repeat; ++k) {
    const double begin = MPI_Wtime();
    step();
    seconds.push_back(MPI_Wtime() - begin);
  }
  return median(std::move(seconds));
}

double reduce(double value, MPI_Op op, MPI_Comm comm) {
  double result = 0;
  FLUENTPS_MPI(MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, op, comm));
  return result;
}

/// Runs on the ranks for which `mine` holds while the others stay inside MPI.
double timed_by(const Roles& roles, bool mine, int repeat, const std::function<void()>& step) {
  FLUENTPS_MPI(MPI_Barrier(roles.job.get()));
  const double seconds = mine ? time_steps(repeat, step) : 0;
  return reduce(seconds, MPI_MAX, roles.job.get());
}

/// Seconds of a step of all ranks for which `mine` holds at once: the time in which the last of them has made `repeat`,
/// a batch at a time, divided. A rank's own steps say less where ranks share a core: while it has the core it makes
/// them as if it were alone.
double timed_together(const Roles& roles, bool mine, int repeat, const std::function<void()>& step) {
  constexpr int kBatches = 5;
  const int batch = std::max(1, repeat / kBatches);
  if (mine) step();
  std::vector<double> seconds;
  for (int k = 0; k < kBatches; ++k) {
    FLUENTPS_MPI(MPI_Barrier(roles.job.get()));
    const double begin = MPI_Wtime();
    for (int j = 0; mine && j < batch; ++j) step();
    seconds.push_back(reduce(MPI_Wtime() - begin, MPI_MAX, roles.job.get()) / batch);
  }
  return median(std::move(seconds));
}

void measure_memory(const Roles& roles, References& result, int repeat) {
  const auto elements = static_cast<std::size_t>(kBandwidthElements);
  std::vector<float> a(elements, 1.0F), b(elements, 2.0F), c(elements, 3.0F);
  const double copied = 2.0 * sizeof(float) * static_cast<double>(elements);
  const double triad = 3.0 * sizeof(float) * static_cast<double>(elements);
  const auto copy_step = [&] { std::memcpy(a.data(), b.data(), elements * sizeof(float)); };
  // apply alone moves as a triad does: two streams read, one written.
  const auto triad_step = [&] { kernels::apply(a, c, 0.5F); };
  const bool first = roles.job.rank() == 0;
  result.memcpy_one_gbs = copied / timed_by(roles, first, repeat, copy_step) / kGiga;
  result.triad_one_gbs = triad / timed_by(roles, first, repeat, triad_step) / kGiga;
  const double ranks = roles.job.size();
  result.memcpy_all_gbs = ranks * copied / timed_together(roles, true, repeat, copy_step) / kGiga;
  result.triad_all_gbs = ranks * triad / timed_together(roles, true, repeat, triad_step) / kGiga;
}

/// On every server a shard of weights and beside it one of updates per worker; one buffer of n elements per worker.
class RawTransfers {
 public:
  RawTransfers(const Roles& roles, std::int64_t n)
      : roles_(roles),
        map_({{"w", {n}}}, roles.server_count(), Slicing::kEps),
        is_server_(roles.role == Role::kServer),
        shard_(is_server_ ? map_.shard_size(ServerIndex{roles.index}) : 0),
        window_(roles.job.get(), shard_ * (1 + std::int64_t{roles.worker_count()}) * kFloat, "reference"),
        buffer_(static_cast<std::size_t>(is_server_ ? 0 : n), 1.0F) {}

  void put() {
    each_slice([&](ServerIndex server, std::span<float> part) {
      window_.put(rank(server), map_.shard_size(server) * (1 + std::int64_t{roles_.index}) * kFloat,
                  std::as_bytes(part));
    });
  }
  void get() {
    each_slice(
        [&](ServerIndex server, std::span<float> part) { window_.get(rank(server), 0, std::as_writable_bytes(part)); });
  }
  /// One iteration without a parameter server, on all ranks.
  void exchange() {
    if (is_server_) {
      hear_from(roles_.rank_of_worker);
      window_.sync();
      for (std::uint32_t w = 0; w < roles_.worker_count(); ++w) kernels::apply(shard(0), shard(1 + w), 0.5F);
      window_.sync();
      tell(roles_.rank_of_worker);
    } else {
      put();
      tell(roles_.rank_of_server);
      hear_from(roles_.rank_of_server);
      get();
    }
  }

 private:
  static constexpr std::int64_t kFloat = sizeof(float);

  void each_slice(const std::function<void(ServerIndex, std::span<float>)>& move) {
    for (std::uint32_t k = 0; k < roles_.server_count(); ++k) {
      const ServerIndex server{(roles_.index + k) % roles_.server_count()};
      for (const auto& slice : map_.slices(server))
        move(server,
             std::span(buffer_).subspan(static_cast<std::size_t>(slice.offset), static_cast<std::size_t>(slice.count)));
    }
    for (const int target : roles_.rank_of_server) window_.flush(target);
  }
  std::span<float> shard(std::int64_t k) {
    const auto bytes = window_.memory().subspan(static_cast<std::size_t>(k * shard_ * kFloat));
    return {reinterpret_cast<float*>(bytes.data()), static_cast<std::size_t>(shard_)};
  }
  void tell(const std::vector<int>& ranks) {
    for (const int each : ranks) FLUENTPS_MPI(MPI_Send(nullptr, 0, MPI_BYTE, each, kTag, roles_.job.get()));
  }
  void hear_from(const std::vector<int>& ranks) {
    for (const int each : ranks)
      FLUENTPS_MPI(MPI_Recv(nullptr, 0, MPI_BYTE, each, kTag, roles_.job.get(), MPI_STATUS_IGNORE));
  }
  int rank(ServerIndex server) const { return roles_.rank_of_server.at(server.value); }

  const Roles& roles_;
  ShardMap map_;
  bool is_server_;
  std::int64_t shard_;
  Window window_;
  std::vector<float> buffer_;
};

void measure_one_sided(const Roles& roles, std::int64_t n, int repeat, References& result) {
  RawTransfers raw(roles, n);
  const bool worker = roles.role == Role::kWorker;
  const bool worker0 = worker && roles.index == 0;
  result.put_s = timed_by(roles, worker0, repeat, [&] { raw.put(); });
  result.get_s = timed_by(roles, worker0, repeat, [&] { raw.get(); });
  result.put_get_all_s = timed_together(roles, worker, repeat, [&] {
    raw.put();
    raw.get();
  });
  result.exchange_s = timed_together(roles, true, repeat, [&] { raw.exchange(); });
}

void measure_two_sided(const Roles& roles, std::int64_t n, int repeat, References& result) {
  std::vector<float> buffer(static_cast<std::size_t>(n), 1.0F);
  const auto count = static_cast<int>(n);
  const int server = roles.rank_of_server[0];
  const int worker = roles.rank_of_worker[0];
  const int rank = roles.job.rank();
  FLUENTPS_MPI(MPI_Barrier(roles.job.get()));
  double seconds = 0;
  if (rank == worker || rank == server)
    seconds = time_steps(repeat, [&] {
      if (rank == worker) {
        FLUENTPS_MPI(MPI_Send(buffer.data(), count, MPI_FLOAT, server, kTag, roles.job.get()));
        FLUENTPS_MPI(MPI_Recv(buffer.data(), count, MPI_FLOAT, server, kTag, roles.job.get(), MPI_STATUS_IGNORE));
      } else {
        FLUENTPS_MPI(MPI_Recv(buffer.data(), count, MPI_FLOAT, worker, kTag, roles.job.get(), MPI_STATUS_IGNORE));
        FLUENTPS_MPI(MPI_Send(buffer.data(), count, MPI_FLOAT, worker, kTag, roles.job.get()));
      }
    });
  result.pingpong_s = reduce(rank == worker ? seconds : 0, MPI_MAX, roles.job.get());

  std::vector<float> sum(buffer.size());
  seconds = 0;
  if (roles.role == Role::kWorker)
    seconds = time_steps(repeat, [&] {
      FLUENTPS_MPI(MPI_Allreduce(buffer.data(), sum.data(), count, MPI_FLOAT, MPI_SUM, roles.workers.get()));
    });
  result.allreduce_s = reduce(seconds, MPI_MAX, roles.job.get());
  result.local_update_s = timed_by(roles, rank == worker, repeat, [&] { kernels::apply(buffer, sum, 0.5F); });
}

}  // namespace

References measure_references(const Roles& roles, std::int64_t n, int repeat) {
  References result;
  measure_memory(roles, result, std::min(repeat, 10));
  measure_one_sided(roles, n, repeat, result);
  measure_two_sided(roles, n, repeat, result);
  return result;
}

}  // namespace fluentps::app
