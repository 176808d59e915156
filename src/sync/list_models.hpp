/// The text of `fluentps-train --list-sync`.
#pragma once

#include <string>

namespace fluentps {

/// Every registered model with its signature, conditions and source, then the releases, the options and the grammar of
/// `--sync`. Ends with a newline.
std::string list_sync_models();

}  // namespace fluentps
