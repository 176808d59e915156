/// Options of fluentps-train: one table drives the parser, --help, the ini files and the dump.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fluentps/session.hpp"
#include "train/problem.hpp"
#include "train/trainer.hpp"

namespace fluentps::app {

struct Config {
  SessionOptions session;
  train::ProblemOptions problem;
  train::TrainerOptions trainer;
  std::vector<Iteration> iterations;  ///< by worker, the last one standing for the rest
  double epochs = 0;
  std::uint32_t global_batch = 0;
  std::string iterations_text = "1000";
  std::string nonfinite = "abort";
  std::string optimizer_at = "worker";
  Iteration checkpoint_every = 0;
  std::string save_weights;
  bool help = false;
  bool list_sync = false;
  bool version = false;
  bool preflight_only = false;
  bool check_config = false;

  /// Every option and its value, as `name=value` lines of an ini file that repeats this run.
  std::string effective;
};

/// Command line first, then the files named by --config, later files before earlier ones. Throws UsageError, for a file
/// with its name and line.
Config parse_config(int argc, const char* const* argv);

/// What can be found wrong without data and servers. Throws UsageError.
void check_config(const Config& config, std::uint32_t workers);

/// The text of --help.
std::string help_text();

}  // namespace fluentps::app
