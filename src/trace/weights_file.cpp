/// Saves weights.
#include "trace/weights_file.hpp"

#include <fmt/format.h>

#include "trace/new_file.hpp"
#include "trace/replace_file.hpp"

namespace fluentps::trace {
namespace {

void write_tensor(hid_t file, const TensorSpec& tensor, const float* values, hid_t links, const std::string& path) {
  const std::vector<hsize_t> shape(tensor.shape.begin(), tensor.shape.end());
  const Handle space(
      shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
      H5Sclose, "H5Screate_simple", path);
  const Handle dataset(
      H5Dcreate2(file, tensor.name.c_str(), H5T_NATIVE_FLOAT, space.get(), links, H5P_DEFAULT, H5P_DEFAULT), H5Dclose,
      "H5Dcreate2", path);
  check_hdf5(H5Dwrite(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "H5Dwrite", path);
}

}  // namespace

void save_weights(const std::string& path, const std::vector<TensorSpec>& tensors, std::span<const float> weights) {
  std::int64_t elements = 0;
  for (const auto& tensor : tensors) elements += tensor.size();
  if (elements != static_cast<std::int64_t>(weights.size()))
    throw UsageError(fmt::format("the tensors have {} elements where {} weights are given", elements, weights.size()));
  replace_file(path, [&](const std::string& temporary) {
    NewFile file(temporary, path);
    const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "H5Pcreate", path);
    check_hdf5(H5Pset_create_intermediate_group(links.get(), 1), "H5Pset_create_intermediate_group", path);
    const float* values = weights.data();
    for (const auto& tensor : tensors) {
      write_tensor(file.get(), tensor, values, links.get(), path);
      values += tensor.size();
    }
    file.close();
  });
}

}  // namespace fluentps::trace
