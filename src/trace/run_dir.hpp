/// The folder of a run: its own, never used twice.
#pragma once

#include <string>

namespace fluentps::trace {

/// Makes OUT/<run-id> and returns its path. Called by one rank. An id that exists gets the suffix -r1, -r2 ...; mkdir
/// is the atomic claim, so two runs that start together get two folders. Empty `run_id`: default_run_id(model).
/// Throws UsageError: OUT cannot be written, the id is no plain name.
std::string create_run_dir(const std::string& out, const std::string& run_id, const std::string& model = "");

/// UTC time and the short name of the model, e.g. "20191002T093045Z-resnet56".
std::string default_run_id(const std::string& model);

/// "rank-0000.h5"
std::string rank_file_name(int rank);

}  // namespace fluentps::trace
