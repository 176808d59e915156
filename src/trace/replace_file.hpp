/// A file that appears whole or not at all: written under another name, brought to the disk, renamed.
#pragma once

#include <functional>
#include <string>

namespace fluentps::trace {

/// Calls write(temporary), which makes that file in the same folder, then renames it to `path`, replacing what is
/// there. What `write` throws passes through, and the temporary file is gone. Throws RunError naming the path.
void replace_file(const std::string& path, const std::function<void(const std::string& temporary)>& write);

}  // namespace fluentps::trace
