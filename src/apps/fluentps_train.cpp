/// Trains a model on a parameter server: mpirun -np RANKS fluentps-train [options]
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>

#include "apps/train/config.hpp"
#include "apps/train/signals.hpp"
#include "apps/train/train_app.hpp"
#include "fluentps/error.hpp"
#include "fluentps/mpi.hpp"
#include "sync/list_models.hpp"
#include "trace/provenance.hpp"

namespace {

/// Prints on one rank what needs no run.
int answer(const std::string& text) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) fmt::print("{}", text);
  return fluentps::kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  fluentps::app::install_stop_signal();  // first: one that comes while MPI starts shall neither end a rank nor be lost
  return fluentps::run_main(&argc, &argv, [&] {
    const auto config = fluentps::app::parse_config(argc, argv);
    if (config.help) return answer(fluentps::app::help_text());
    if (config.check_config) {
      int ranks = 1;
      MPI_Comm_size(MPI_COMM_WORLD, &ranks);
      fluentps::app::check_config(
          config, static_cast<std::uint32_t>(std::max(1, ranks - static_cast<int>(config.session.servers))));
      return answer(config.effective);
    }
    if (config.list_sync) return answer(fluentps::list_sync_models());
    if (config.version) return answer(fluentps::trace::version_text());
    return fluentps::app::run_training(config, argc, argv);
  });
}
