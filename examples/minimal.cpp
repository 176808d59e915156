/// A least-squares fit with an own gradient: the library in 40 lines.
///
///   mpicxx -std=c++20 -Iinclude examples/minimal.cpp build/lib/libfluentps.a -lhdf5_serial -lfmt -o minimal
///   mpirun -np 4 --oversubscribe build/examples/minimal
///   worker 0: distance to the optimum 0.0000
#include <cmath>
#include <cstdio>
#include <vector>

#include "fluentps/fluentps.hpp"

constexpr std::int64_t kParameters = 1000;

/// Gradient of 1/2 |w - 1|^2: the optimum is one everywhere.
static void gradient(const std::vector<float>& w, std::vector<float>& g) {
  for (std::size_t j = 0; j < w.size(); ++j) g[j] = w[j] - 1.0F;
}

int main(int argc, char** argv) {
  return fluentps::run_main(&argc, &argv, [] {
    fluentps::SessionOptions options;
    options.servers = 1;
    options.sync = "ssp:s=2";
    options.tensors = {{"w", {kParameters}}};
    fluentps::Session session(MPI_COMM_WORLD, options);
    session.run([](fluentps::Worker& worker) {  // servers serve meanwhile
      std::vector<float> w(kParameters, 0.0F), g(kParameters), update(kParameters);
      worker.initialize(w);
      for (int i = 0; i < 200; ++i) {
        gradient(w, g);
        for (std::size_t j = 0; j < g.size(); ++j) update[j] = -0.1F * g[j];
        worker.push(update);  // w += update / workers
        worker.pull(w);
      }
      double distance = 0;
      for (const float each : w) distance += (each - 1.0) * (each - 1.0);
      if (worker.index().value == 0) std::printf("worker 0: distance to the optimum %.4f\n", std::sqrt(distance));
    });
    return 0;
  });
}
