#include "ps/manifest.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/crc.hpp>
#define BOOST_BIND_GLOBAL_PLACEHOLDERS  // Boost 1.74 would print a note of its own headers
#include <boost/property_tree/json_parser.hpp>
#include <boost/property_tree/ptree.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fluentps/error.hpp"
#include "trace/replace_file.hpp"

namespace fluentps {
namespace {

namespace fs = std::filesystem;
using Tree = boost::property_tree::ptree;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kPrefix = "iteration-";
constexpr int kFormat = 1;

std::string to_json(const Tree& tree) {
  std::ostringstream out;
  boost::property_tree::write_json(out, tree);
  return out.str();
}

std::uint32_t checksum_of(const std::string& text) {
  boost::crc_32_type checksum;
  checksum.process_bytes(text.data(), text.size());
  return checksum.checksum();
}

Tree to_tree(const Manifest& manifest) {
  Tree tree;
  tree.put("format", kFormat);
  tree.put("iteration", manifest.iteration);
  tree.put("servers", manifest.servers);
  tree.put("workers", manifest.workers);
  tree.put("slicing", manifest.slicing);
  tree.put("sync", manifest.sync);
  tree.put("seed", manifest.seed);
  Tree tensors;
  for (const auto& each : manifest.tensors) {
    Tree tensor;
    Tree shape;
    tensor.put("name", each.name);
    for (const auto extent : each.shape) shape.push_back({"", Tree(std::to_string(extent))});
    tensor.put_child("shape", shape);
    tensors.push_back({"", tensor});
  }
  tree.put_child("tensors", tensors);
  Tree names;
  for (const auto& each : manifest.worker_state) names.push_back({"", Tree(each)});
  tree.put_child("worker_state", names);
  Tree files;
  for (const auto& each : manifest.files) {
    Tree file;
    file.put("name", each.name);
    file.put("bytes", each.written.bytes);
    file.put("crc32", fmt::format("{:08x}", each.written.checksum));
    files.push_back({"", file});
  }
  tree.put_child("files", files);
  return tree;
}

Manifest from_tree(const Tree& tree) {
  Manifest manifest;
  manifest.iteration = tree.get<Iteration>("iteration");
  manifest.servers = tree.get<std::uint32_t>("servers");
  manifest.workers = tree.get<std::uint32_t>("workers");
  manifest.slicing = tree.get<std::string>("slicing");
  manifest.sync = tree.get<std::string>("sync");
  manifest.seed = tree.get<std::uint64_t>("seed");
  for (const auto& [key, each] : tree.get_child("tensors")) {
    TensorSpec tensor{each.get<std::string>("name"), {}};
    for (const auto& [none, extent] : each.get_child("shape")) tensor.shape.push_back(extent.get_value<std::int64_t>());
    manifest.tensors.push_back(tensor);
  }
  for (const auto& [key, each] : tree.get_child("worker_state")) manifest.worker_state.push_back(each.data());
  for (const auto& [key, each] : tree.get_child("files"))
    manifest.files.push_back({each.get<std::string>("name"),
                              {each.get<std::uint64_t>("bytes"),
                               static_cast<std::uint32_t>(std::stoul(each.get<std::string>("crc32"), nullptr, 16))}});
  return manifest;
}

/// Whole checkpoints below `root`, oldest first.
std::vector<fs::path> whole_checkpoints(const fs::path& root) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error))
    if (entry.path().filename().string().starts_with(kPrefix) && fs::exists(entry.path() / kManifest, error))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

[[noreturn]] void refuse(const fs::path& folder, const std::string& why) {
  const auto all = whole_checkpoints(folder.parent_path().empty() ? fs::path(".") : folder.parent_path());
  const auto here =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.filename() == folder.filename(); });
  const bool first = here == all.begin() || here == all.end();
  throw UsageError(fmt::format("the checkpoint {} is damaged: {}; {}", folder.string(), why,
                               first
                                   ? "there is none before it, so start without --resume"
                                   : fmt::format("go on from the one before with --resume {}", (here - 1)->string())));
}

Manifest read_manifest(const fs::path& folder) {
  Manifest manifest;
  try {
    Tree tree;
    boost::property_tree::read_json((folder / kManifest).string(), tree);
    const auto stated = tree.get<std::string>("crc32");
    tree.erase("crc32");
    if (stated != fmt::format("{:08x}", checksum_of(to_json(tree))))
      throw std::runtime_error("its checksum is another than the one it states");
    if (tree.get<int>("format") != kFormat)
      throw UsageError(fmt::format("{} has format {}, which this program does not know; it reads {}",
                                   (folder / kManifest).string(), tree.get<std::string>("format"), kFormat));
    manifest = from_tree(tree);
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    refuse(folder, fmt::format("{} cannot be read ({})", kManifest, error.what()));
  }
  manifest.folder = folder.string();
  return manifest;
}

/// A rename is on the disk when its folder is.
void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

std::string checkpoint_folder(const std::string& root, Iteration iteration) {
  return (fs::path(root) / fmt::format("{}{:010}", kPrefix, iteration)).string();
}
std::string server_file(std::uint32_t index) { return fmt::format("server-{:04}.h5", index); }
std::string worker_file(std::uint32_t index) { return fmt::format("worker-{:04}.h5", index); }

void write_manifest(const Manifest& manifest) {
  auto tree = to_tree(manifest);
  tree.put("crc32", fmt::format("{:08x}", checksum_of(to_json(tree))));
  const fs::path folder(manifest.folder);
  sync_folder(folder);
  trace::replace_file((folder / kManifest).string(), [&](const std::string& temporary) {
    std::ofstream out(temporary, std::ios::binary);
    out << to_json(tree);
    out.close();
    if (!out) throw RunError(fmt::format("{} cannot be written", (folder / kManifest).string()));
  });
  sync_folder(folder);
  sync_folder(folder.parent_path());
}

void remove_old(const std::string& root, std::uint32_t keep) {
  const auto whole = whole_checkpoints(root);
  if (keep == 0 || whole.size() <= keep) return;
  const auto oldest_kept = whole[whole.size() - keep];
  std::vector<fs::path> old;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error))
    if (entry.path().filename().string().starts_with(kPrefix) && entry.path() < oldest_kept)
      old.push_back(entry.path());
  for (const auto& each : old) {
    fs::remove(each / kManifest, error);  // first, so that what is left of it is no checkpoint
    fs::remove_all(each, error);
  }
}

Manifest find_checkpoint(const std::string& path) {
  const auto given = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  std::error_code error;
  if (fs::exists(given / kManifest, error)) return read_manifest(given);
  auto found = whole_checkpoints(given);
  if (found.empty()) found = whole_checkpoints(given / "checkpoints");
  if (found.empty())
    throw UsageError(
        fmt::format("--resume '{}' holds no whole checkpoint; give a checkpoint's folder (with a {}), the folder "
                    "that holds it, or the folder of the run",
                    path, kManifest));
  return read_manifest(found.back());
}

void check_file(const Manifest& manifest, const Manifest::File& file) {
  const auto path = fs::path(manifest.folder) / file.name;
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) refuse(manifest.folder, fmt::format("{} is missing", file.name));
  if (bytes != file.written.bytes)
    refuse(manifest.folder, fmt::format("{} has {} bytes instead of {}", file.name, bytes, file.written.bytes));
  const auto measured = trace::measure_file(path.string());
  if (measured != file.written)
    refuse(manifest.folder, fmt::format("{} has the checksum {:08x} instead of {:08x}", file.name, measured.checksum,
                                        file.written.checksum));
}

}  // namespace fluentps
