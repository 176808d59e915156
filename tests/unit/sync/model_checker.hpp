/// Drives a controller through random interleavings of pushes, pulls, ticks and leaving workers, compares every
/// decision with the reference and reports the first violated invariant by name.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "reference.hpp"
#include "subject.hpp"

namespace fluentps::test {

/// The same plan twice: as --sync, and as rules of the reference.
struct CheckedPlan {
  std::string sync;
  std::vector<Rule> rules;
};

struct CheckOptions {
  std::function<CheckedPlan(std::uint32_t workers)> plan;
  bool only_fastest = false;
  bool join = false;
  std::uint64_t seed = 1;
  int episodes = 200;  ///< each with its own number of workers, speeds and release
  int events_per_episode = 5000;
  MakeSubject make_subject = make_controller;
};

/// "" where all invariants held, else "NAME: what was found". Names: late, clock, counts, staleness, needless, answers
/// (each pull exactly once), stranded, progress, memory.
std::string check(const CheckOptions& options);

}  // namespace fluentps::test
