/// The library with a synchronization model of one's own: registered, then named in the options like any other.
///
///   mpicxx -std=c++20 -Iinclude examples/own_model.cpp build/lib/libfluentps.a -lhdf5_serial -lfmt -o own_model
///   mpirun -np 4 --oversubscribe build/examples/own_model
///   worker 0: 100 iterations under every:n=10
#include <cstdio>
#include <vector>

#include "every_nth_model.hpp"
#include "fluentps/fluentps.hpp"

int main(int argc, char** argv) {
  return fluentps::run_main(&argc, &argv, [] {
    // [register]
    fluentps::register_sync_model(
        {"every", "every:n=N", "i < V, or (i+1) mod N != 0", "Count[V] == N", "this example", make_every_nth});
    // [register]
    fluentps::SessionOptions options;
    options.servers = 1;
    options.sync = "every:n=10";
    options.tensors = {{"w", {1000}}};
    fluentps::Session session(MPI_COMM_WORLD, options);
    session.run([&](fluentps::Worker& worker) {
      std::vector<float> w(1000, 0.0F), update(1000, 0.01F);
      worker.initialize(w);
      for (int i = 0; i < 100; ++i) {
        worker.push(update);
        worker.pull(w);
      }
      if (worker.index().value == 0) std::printf("worker 0: 100 iterations under %s\n", options.sync.c_str());
    });
    return 0;
  });
}
