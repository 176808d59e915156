/// Reads the contract of a run from its attributes.
#include "trace/contract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "fluentps/error.hpp"
#include "sync/coin.hpp"
#include "trace/attributes.hpp"

namespace fluentps::trace {
namespace {

constexpr std::int64_t kMostRanks = 65535;  // worker and server are 16 bits in the tables

std::uint32_t ranks_of(const RunData& run, const char* name, std::size_t seen) {
  const auto count = number_of(run.attributes, name, static_cast<std::int64_t>(seen));
  if (count < 1 || count > kMostRanks)
    throw UsageError(fmt::format("{}: the attribute {} is {}; a trace that can be verified has 1 to {}", run.path, name,
                                 value_of(run.attributes, name, std::to_string(seen)), kMostRanks));
  return static_cast<std::uint32_t>(count);
}

/// The attribute group_of_worker: numbers in the order of the workers, groups numbered by their first workers.
std::vector<std::uint32_t> groups_of(const RunData& run, std::uint32_t workers) {
  const auto text = value_of(run.attributes, "group_of_worker");
  std::vector<std::uint32_t> groups;
  std::istringstream in(text);
  std::uint32_t next = 0;
  for (std::uint32_t group = 0; in >> group && group <= next; groups.push_back(group)) next += group == next ? 1 : 0;
  if (!text.empty() && (!in.eof() || groups.size() != workers))
    throw UsageError(
        fmt::format("{}: the attribute group_of_worker is '{}'; it has a group for each of {} workers, "
                    "numbered by their first workers",
                    run.path, text, workers));
  return groups;
}

/// A number after `key` in a spec such as "dssp:low=1,high=4".
Iteration argument(const std::string& spec, const std::string& key) {
  const auto at = spec.find(key);
  Iteration value = 0;
  if (at != std::string::npos) std::from_chars(spec.data() + at + key.size(), spec.data() + spec.size(), value);
  return value;
}

Stretch judge(const SyncPlan::Stretch& planned) {
  Stretch stretch{.from = planned.from, .model = planned.model};
  const auto spec = planned.model->spec();
  const auto name = spec.substr(0, spec.find(':'));
  stretch.advances_at_once = spec.find("timeout_ms") == std::string::npos;
  for (const char* exact : {"bsp", "asp", "ssp", "pssp", "drop", "partial", "psp", "softsync"})
    if (name == exact) stretch.proof = Proof::kExact;
  if (name == "dssp") {
    stretch.proof = Proof::kBound;
    stretch.bound = argument(spec, "high=");
  }
  return stretch;
}

}  // namespace

Contract::Contract(const RunData& run)
    : workers_(ranks_of(run, "workers", run.workers().size())),
      servers_(ranks_of(run, "servers", run.servers().size())),
      groups_(groups_of(run, workers_)),
      pushers_(groups_.empty() ? 0 : *std::max_element(groups_.begin(), groups_.end()) + 1) {
  const auto seed = value_of(run.attributes, "seed", "1");
  std::from_chars(seed.data(), seed.data() + seed.size(), seed_);
  parameters_ = static_cast<std::uint64_t>(number_of(run.attributes, "parameters", 0));
  release_ = parse_release(value_of(run.attributes, "release", "lazy"));
  coin_per_server_ = value_of(run.attributes, "coin", "shared") == "per-server";
  only_fastest_ = number_of(run.attributes, "fastest") == 1;
  join_ = number_of(run.attributes, "join") == 1;
  first_iteration_ = number_of(run.attributes, "first_iteration", 0);
  const auto sync = value_of(run.attributes, "sync");
  try {
    if (sync.empty()) throw UsageError("the trace has no attribute sync");
    plan_.emplace(sync, pushers(), servers_);
  } catch (const UsageError& error) {
    plan_failure_ = error.what();
  }
}

bool Contract::exchanges(std::uint32_t worker) const {
  return groups_.empty() ||
         std::find(groups_.begin(), groups_.end(), groups_[worker]) - groups_.begin() == std::ptrdiff_t{worker};
}

std::vector<Stretch> Contract::stretches(std::uint32_t server) const {
  std::vector<Stretch> result;
  if (plan_)
    for (const auto& each : plan_->stretches(ServerIndex{server})) {
      auto stretch = judge(each);
      stretch.from = std::max<Iteration>(0, stretch.from - first_iteration_);
      if (stretch.from == 0) result.clear();  // those before it ended before the run was resumed
      result.push_back(std::move(stretch));
    }
  if (result.empty()) result.emplace_back();
  return result;
}

const Stretch& Contract::at(const std::vector<Stretch>& stretches, Iteration i) {
  auto k = stretches.size() - 1;
  while (k > 0 && stretches[k].from > i) --k;
  return stretches[k];
}

std::uint64_t Contract::coin_seed(std::uint32_t server) const {
  return coin_per_server_ ? seed_ ^ mix64(server + 1ULL) : seed_;
}

void Contract::describe(std::uint32_t server, Verification& verification) const {
  for (const auto& each : stretches(server)) {
    if (!each.model) {
      verification.weak.push_back(fmt::format("server {}: the conditions are not checked: {}", server, plan_failure_));
      continue;
    }
    const auto text = fmt::format("server {}, {} {} from iteration {}", server, to_string(release_), each.model->spec(),
                                  each.from + first_iteration_);
    if (each.proof == Proof::kExact)
      verification.proved.push_back(text);
    else if (each.proof == Proof::kBound)
      verification.weak.push_back(
          fmt::format("{}: the bound chosen at run time is not in the trace; checked: i < V+{}", text, each.bound));
    else
      verification.weak.push_back(
          fmt::format("{}: a model that this program does not know; its condition is not checked", text));
    if (!each.advances_at_once)
      verification.weak.push_back(
          fmt::format("{}: V may move later than it could, when the server looks at the time", text));
  }
}

}  // namespace fluentps::trace
