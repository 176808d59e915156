/// The registry of synchronization models, and the maker of one from its spec.
#include <fmt/format.h>

#include <algorithm>

#include "fluentps/error.hpp"
#include "sync/models.hpp"
#include "sync/spec_text.hpp"
#include "sync/sync_plan.hpp"
#include "text/words.hpp"

namespace fluentps {
namespace {

std::vector<SyncModelEntry>& registry() {
  static std::vector<SyncModelEntry> entries{bsp_entry(),  asp_entry(),     ssp_entry(), dssp_entry(),    pssp_entry(),
                                             drop_entry(), partial_entry(), psp_entry(), softsync_entry()};
  return entries;
}

const SyncModelEntry* find_entry(std::string_view name) {
  const auto& entries = registry();
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

const SyncModelEntry& require_entry(std::string_view name) {
  if (const auto* entry = find_entry(name)) return *entry;
  std::vector<std::string> valid;
  for (const auto& entry : registry()) valid.push_back(entry.name);
  throw UsageError(fmt::format("--sync: there is no model '{}', the nearest is '{}' (valid: {})", name,
                               nearest_name(name, valid), join_names(valid)));
}

}  // namespace

const std::vector<SyncModelEntry>& sync_models() { return registry(); }

void register_sync_model(SyncModelEntry entry) {
  if (find_entry(entry.name) != nullptr)
    throw std::logic_error(fmt::format("a synchronization model '{}' is registered already", entry.name));
  registry().push_back(std::move(entry));
}

std::unique_ptr<SyncModel> make_sync_model(std::string_view spec, std::uint32_t workers) {
  const auto [name, arguments] = parse_model_spec(spec);
  return require_entry(name).make(arguments, workers);
}

}  // namespace fluentps
