/// Writes, reads and measures the files of a checkpoint.
#include "trace/checkpoint_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cstdio>
#include <memory>

#include "fluentps/error.hpp"
#include "trace/new_file.hpp"
#include "trace/replace_file.hpp"

namespace fluentps::trace {
namespace {

constexpr const char* kNumbers = "numbers/";

void write(hid_t file, const std::string& name, hid_t space, hid_t type, const void* values, const std::string& path) {
  const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "H5Pcreate", path);
  check_hdf5(H5Pset_create_intermediate_group(links.get(), 1), "H5Pset_create_intermediate_group", path);
  const Handle dataset(H5Dcreate2(file, name.c_str(), type, space, links.get(), H5P_DEFAULT, H5P_DEFAULT), H5Dclose,
                       "H5Dcreate2", path);
  check_hdf5(H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "H5Dwrite", path);
}

struct Visit {
  LoadedState state;
  std::string path;
};

void read(hid_t file, const std::string& name, Visit& visit) {
  const Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen2", visit.path);
  const Handle space(H5Dget_space(dataset.get()), H5Sclose, "H5Dget_space", visit.path);
  const auto count = check_hdf5(H5Sget_simple_extent_npoints(space.get()), "H5Sget_simple_extent_npoints", visit.path);
  if (name.starts_with(kNumbers)) {
    auto& value = visit.state.numbers[name.substr(std::string(kNumbers).size())];
    check_hdf5(H5Dread(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value), "H5Dread", visit.path);
    return;
  }
  auto& values = visit.state.arrays[name];
  values.resize(static_cast<std::size_t>(count));
  if (count > 0)
    check_hdf5(H5Dread(dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "H5Dread",
               visit.path);
}

/// No exception may pass through HDF5.
herr_t visit_object(hid_t file, const char* name, const H5O_info_t* info, void* data) {
  if (info->type != H5O_TYPE_DATASET) return 0;
  try {
    read(file, name, *static_cast<Visit*>(data));
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

}  // namespace

WrittenFile save_state(const std::string& path, const State& state) {
  WrittenFile written;
  replace_file(path, [&](const std::string& temporary) {
    NewFile file(temporary, path);
    for (const auto& [name, values] : state.arrays) {
      const hsize_t count = values.size();
      const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose, "H5Screate_simple", path);
      write(file.get(), name, space.get(), H5T_NATIVE_FLOAT, values.data(), path);
    }
    for (const auto& [name, value] : state.numbers) {
      const Handle space(H5Screate(H5S_SCALAR), H5Sclose, "H5Screate", path);
      write(file.get(), kNumbers + name, space.get(), H5T_NATIVE_DOUBLE, value, path);
    }
    file.close();
    written = measure_file(temporary);
  });
  return written;
}

LoadedState load_state(const std::string& path) {
  quiet_hdf5();
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, "H5Fopen", path);
  Visit visit{{}, path};
  check_hdf5(H5Ovisit(file.get(), H5_INDEX_NAME, H5_ITER_NATIVE, visit_object, &visit), "H5Ovisit", path);
  return std::move(visit.state);
}

WrittenFile measure_file(const std::string& path) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw UsageError(fmt::format("{} cannot be read", path));
  std::vector<char> block(kBlock);
  boost::crc_32_type checksum;
  WrittenFile measured;
  while (const auto count = std::fread(block.data(), 1, kBlock, file.get())) {
    checksum.process_bytes(block.data(), count);
    measured.bytes += count;
  }
  if (std::ferror(file.get()) != 0) throw UsageError(fmt::format("{} cannot be read", path));
  measured.checksum = checksum.checksum();
  return measured;
}

}  // namespace fluentps::trace
