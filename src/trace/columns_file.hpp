/// A small table of numbers in an HDF5 file: a dataset per column, attributes for what it was measured with.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trace/writer.hpp"

namespace fluentps::trace {

/// A column's name and its values, one per row.
using Column = std::pair<std::string, std::vector<double>>;

/// Writes `columns`, of equal length, to `path`. The file appears whole or not at all; an existing one is replaced.
/// Throws Hdf5Error or RunError naming the path.
void save_columns(const std::string& path, const std::vector<Column>& columns, const Attributes& attributes);

}  // namespace fluentps::trace
