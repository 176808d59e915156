/// Measures push+pull: mpirun -np RANKS fluentps-bench [options]
#include <fmt/format.h>
#include <mpi.h>

#include "apps/bench/bench_app.hpp"
#include "fluentps/error.hpp"
#include "fluentps/mpi.hpp"

int main(int argc, char** argv) {
  return fluentps::run_main(&argc, &argv, [&] {
    const auto config = fluentps::app::parse_bench_config(argc, argv);
    if (!config.help) return fluentps::app::run_bench(config);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) fmt::print("{}", fluentps::app::bench_help_text());
    return static_cast<int>(fluentps::kExitDone);
  });
}
