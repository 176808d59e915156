#include "trace/columns_file.hpp"

#include "trace/attributes.hpp"
#include "trace/new_file.hpp"
#include "trace/replace_file.hpp"

namespace fluentps::trace {

void save_columns(const std::string& path, const std::vector<Column>& columns, const Attributes& attributes) {
  replace_file(path, [&](const std::string& temporary) {
    NewFile file(temporary, path);
    for (const auto& [name, values] : columns) {
      const hsize_t rows = values.size();
      const Handle space(H5Screate_simple(1, &rows, nullptr), H5Sclose, "H5Screate_simple", path);
      const Handle dataset(
          H5Dcreate2(file.get(), name.c_str(), H5T_NATIVE_DOUBLE, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          H5Dclose, "H5Dcreate2", path);
      check_hdf5(H5Dwrite(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "H5Dwrite",
                 path);
    }
    write_attributes(file.get(), attributes, path);
    file.close();
  });
}

}  // namespace fluentps::trace
