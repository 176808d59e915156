/// The parsed `--sync` option.
#include "sync/sync_plan.hpp"

#include <fmt/format.h>

#include "fluentps/error.hpp"
#include "sync/spec_text.hpp"

namespace fluentps {

SyncPlan::SyncPlan(std::string_view text, std::uint32_t workers, std::uint32_t servers) : workers_(workers) {
  for (const auto& part : parse_plan(text)) {
    if (part.server && part.server->value >= servers)
      throw UsageError(fmt::format("--sync: server{} does not exist, the {} of this run {} server0{}",
                                   part.server->value, servers == 1 ? "only server" : "servers",
                                   servers == 1 ? "is" : "are",
                                   servers == 1 ? "" : fmt::format(" to server{}", servers - 1)));
    parts_.push_back(
        {.server = part.server, .from = part.from.value_or(0), .model = make_sync_model(part.model, workers)->spec()});
  }
}

std::vector<SyncPlan::Stretch> SyncPlan::stretches(ServerIndex server) const {
  std::vector<const Part*> ruling;
  for (const auto& part : parts_) {
    if (part.server && *part.server != server) continue;
    while (!ruling.empty() && ruling.back()->from >= part.from) ruling.pop_back();
    ruling.push_back(&part);
  }
  std::vector<Stretch> stretches;
  for (const auto* part : ruling)
    stretches.push_back({.from = part->from, .model = make_sync_model(part->model, workers_)});
  return stretches;
}

std::string SyncPlan::canonical() const {
  std::string text;
  for (const auto& part : parts_) {
    if (!text.empty()) text += "; ";
    if (part.server) {
      text += fmt::format("server{}", part.server->value);
      if (part.from > 0) text += fmt::format("@{}", part.from);
      text += '=';
    } else if (&part != &parts_.front()) {
      text += fmt::format("@{} ", part.from);
    }
    text += part.model;
  }
  return text;
}

}  // namespace fluentps
