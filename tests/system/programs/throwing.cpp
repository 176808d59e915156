/// A user's program whose gradient code throws on one worker in iteration 5, a second after the others are done with 4.
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fluentps/fluentps.hpp"

int main(int argc, char** argv) {
  return fluentps::run_main(&argc, &argv, [&] {
    fluentps::SessionOptions options;
    options.sync = "bsp";
    options.tensors = {{"w", {5000}}};
    options.out = argc > 1 ? argv[1] : "";
    options.trace_flush_s = 60;  // what is on disk was written on the way out
    fluentps::Session session(MPI_COMM_WORLD, options);
    session.run([](fluentps::Worker& worker) {
      std::vector<float> w(5000, 0.0F), u(5000, 1.0F);
      worker.initialize(w);
      for (int i = 0; i < 100; ++i) {
        if (i == 5 && worker.index().value == 1) {
          std::this_thread::sleep_for(std::chrono::seconds(1));
          throw std::runtime_error("the user's gradient failed");
        }
        worker.push_pull(u, w);
      }
    });
    session.close_trace();
    return 0;
  });
}
