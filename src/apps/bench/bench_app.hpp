/// fluentps-bench from parsed options to the tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fluentps/session.hpp"

namespace fluentps::app {

struct BenchConfig {
  SessionOptions session;
  std::vector<std::int64_t> sizes = {256, 853'018, 61'000'000};  ///< parameters
  int repeat = 0;  ///< iterations of each size; 0: as many as move about 4 GB, 10 to 2000
  bool references = true;
  std::string out;  ///< OUT.csv and OUT.h5 get a row per size; empty: none
  bool help = false;
};

/// Throws UsageError.
BenchConfig parse_bench_config(int argc, const char* const* argv);
std::string bench_help_text();

/// Collective over MPI_COMM_WORLD.
int run_bench(const BenchConfig& config);

}  // namespace fluentps::app
