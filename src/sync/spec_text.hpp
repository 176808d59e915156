/// Takes the texts of `--sync` apart; knows no models.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fluentps/sync_model.hpp"

namespace fluentps {

/// "pssp:s=3,c=0.1"
struct ModelSpecText {
  std::string name;
  SyncArguments arguments;
};
/// Throws UsageError: no name, an argument without '=', one given twice.
ModelSpecText parse_model_spec(std::string_view text);

/// "server1@500=pssp:s=3,c=0.1"
struct PlanPartText {
  std::optional<ServerIndex> server;
  std::optional<Iteration> from;
  std::string_view model;  ///< a part of the text parsed
};
/// Throws UsageError: an empty part, a malformed server or iteration.
std::vector<PlanPartText> parse_plan(std::string_view text);

}  // namespace fluentps
