#include "ps/session_setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "fluentps/error.hpp"
#include "gpu/open_device.hpp"
#include "net/agree.hpp"
#include "net/mpi_error.hpp"
#include "net/simulated.hpp"
#include "trace/provenance.hpp"
#include "trace/run_dir.hpp"

namespace fluentps {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);
constexpr std::int64_t kLineElements = 16;
constexpr std::size_t kLargestMessage = std::size_t{1} << 26;

std::string serialize(const std::vector<TensorSpec>& tensors) {
  std::string text;
  for (const auto& each : tensors)
    text += fmt::format("{} {} {}\n", each.name, each.shape.size(), fmt::join(each.shape, " "));
  return text;
}

std::vector<TensorSpec> deserialize(const std::string& text) {
  std::vector<TensorSpec> tensors;
  std::istringstream in(text);
  TensorSpec tensor;
  for (std::size_t dimensions = 0; in >> tensor.name >> dimensions;) {
    tensor.shape.resize(dimensions);
    for (auto& extent : tensor.shape) in >> extent;
    tensors.push_back(tensor);
  }
  return tensors;
}

void check_tensors(const std::vector<TensorSpec>& tensors) {
  if (tensors.empty()) throw UsageError("the session has no tensors; worker 0 must give SessionOptions::tensors");
  for (const auto& each : tensors) {
    if (each.name.empty() || each.name.find_first_of(" \t\n") != std::string::npos)
      throw UsageError(
          fmt::format("the tensor name '{}' is empty or has white space; give it a plain name", each.name));
    if (std::any_of(each.shape.begin(), each.shape.end(), [](auto extent) { return extent < 0; }))
      throw UsageError(
          fmt::format("tensor {} has a negative extent in its shape [{}]", each.name, fmt::join(each.shape, ", ")));
  }
}

bool parse_choice(std::string_view text, const char* option, std::string_view no, std::string_view yes) {
  if (text == yes) return true;
  if (text == no) return false;
  throw UsageError(fmt::format("unknown --{} '{}'; use {} or {}", option, text, no, yes));
}

void require_positive(double value, const char* option) {
  if (!(value > 0)) throw UsageError(fmt::format("--{} is {}; it must be more than 0", option, value));
}

}  // namespace

ParsedOptions parse(const SessionOptions& options) {
  require_positive(options.stall_s, "stall-s");
  require_positive(options.abort_s, "abort-s");
  if (options.trace_flush_s < 0)
    throw UsageError(fmt::format("--trace-flush-s is {}; it must be 0 or more", options.trace_flush_s));
  if (options.pslite_keys && options.transport == "p2p")
    throw UsageError("--pslite-keys needs one-sided windows; use --transport rma");
  if (options.pslite_keys && options.wire != "fp32")
    throw UsageError(fmt::format("--pslite-keys goes with --wire fp32 only, found {}", options.wire));
  const auto gpu_transfer = parse_gpu_transfer(options.gpu_transfer);
  if (gpu_transfer != GpuTransfer::kOff) {
    if (!options.device) require_cuda_build();
    if (kSimulated) throw UsageError("--gpu-transfer has no meaning on a simulated cluster; leave it off");
    if (options.pslite_keys) throw UsageError("--pslite-keys moves host memory only; use --gpu-transfer off");
    if (gpu_transfer == GpuTransfer::kDirect && options.transport == "p2p")
      throw UsageError("--gpu-transfer direct needs one-sided windows; use --transport auto or rma");
  }
  return {.placement = parse_placement(options.placement),
          .slicing = parse_slicing(options.slicing),
          .release = parse_release(options.release),
          .staleness_scale = parse_staleness_scale(options.staleness_scale),
          .transport = parse_transport(options.transport),
          .wait = parse_wait_policy(options.wait),
          .wire = parse_wire_format(options.wire),
          .gpu_transfer = gpu_transfer,
          .group = parse_group_rule(options.local_group),
          .central = parse_choice(options.coordination, "coordination", "per-server", "central"),
          .coin_per_server = parse_choice(options.coin, "coin", "shared", "per-server")};
}

std::string to_text(const SessionOptions& o) {
  return fmt::format(
             "servers = {}\nplacement = {}\nslicing = {}\nsync = {}\nrelease = {}\ncoordination = {}\ncoin = {}\n"
             "staleness-scale = {}\nfastest = {}\njoin = {}\nseed = {}\ntransport = {}\nchunk-kib = {}\nring = {}\n"
             "wire = {}\npslite-keys = {}\nout = {}\ngpu-transfer = {}\n",
             o.servers, o.placement, o.slicing, o.sync, o.release, o.coordination, o.coin, o.staleness_scale,
             o.only_fastest, o.join, o.seed, o.transport, o.chunk_kib, o.ring, o.wire, o.pslite_keys, o.out,
             o.gpu_transfer) +
         fmt::format("checkpoint-dir = {}\nresume = {}\noptimizer-at = {}\nlocal-group = {}\n", o.checkpoint_dir,
                     o.resume, o.server_optimizer ? "server" : "worker", o.local_group);
}

std::vector<TensorSpec> share_tensors(const Roles& roles, const std::vector<TensorSpec>& own) {
  const int root = roles.rank_of_worker[0];
  agree(roles.job.get(), [&] {
    if (roles.job.rank() == root) check_tensors(own);
  });
  const auto text = serialize(own);
  const auto shared = broadcast(roles.job.get(), text, root);
  agree(roles.job.get(), [&] {
    if (!own.empty() && text != shared)
      throw UsageError(
          fmt::format("{} has other tensors than worker 0; all workers need the same names and shapes", roles.name()));
  });
  return deserialize(shared);
}

void check_iterations(const Roles& roles, const Comm& group, Iteration own) {
  struct Claim {
    std::uint64_t worker = 0;
    Iteration iterations = 0;
  };
  Claim first{roles.index, own};
  if (group) FLUENTPS_MPI(MPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, group.get()));
  agree(roles.job.get(), [&] {
    if (group && first.iterations != own)
      throw UsageError(
          fmt::format("worker {} makes {} iterations and worker {} of the same local group {}; give the workers of a "
                      "group the same "
                      "number of --iterations, or use --local-group none",
                      roles.index, own, first.worker, first.iterations));
  });
}

TransportChoice share_choice(const Roles& roles, const TransportChoice& own) {
  const int root = roles.rank_of_worker[0];
  TransportChoice choice = own;
  choice.kind = parse_transport(broadcast(roles.job.get(), std::string(to_string(own.kind)), root));
  choice.reason = broadcast(roles.job.get(), own.reason, root);
  FLUENTPS_MPI(MPI_Bcast(&choice.shared_memory, 1, MPI_CXX_BOOL, root, roles.job.get()));
  return choice;
}

std::string claim_run_dir(const Roles& roles, const SessionOptions& options) {
  std::string dir;
  std::string model;
  for (const auto& [name, value] : options.trace_attributes)
    if (name == "model") model = value;
  agree(roles.job.get(), [&] {
    if (roles.job.rank() == 0) dir = trace::create_run_dir(options.out, options.run_id, model);
  });
  return broadcast(roles.job.get(), dir, 0);
}

namespace {

/// What is best by measurement (docs/benchmark.md): enough chunks that pushes, sums and pulls overlap, few enough that
/// each is worth its messages. In shared memory what one rank has written should still be in the caches when another
/// reads it. On a device chunks only overlap with their copies.
struct DefaultChunks {
  std::int64_t least_kib, most_kib;
  std::uint32_t ring;
};

DefaultChunks default_chunks(const ParsedOptions& parsed, const TransportChoice& transport) {
  if (parsed.gpu_transfer != GpuTransfer::kOff) return {1024, 1024, 4};
  if (transport.kind == TransportKind::kP2p) return {64, 1024, 4};
  return transport.shared_memory ? DefaultChunks{64, 256, 2} : DefaultChunks{256, 1024, 4};
}

}  // namespace

Chunking choose_chunking(const SessionOptions& options, const ParsedOptions& parsed, const ShardMap& map,
                         const TransportChoice& transport) {
  constexpr std::int64_t kChunks = 16;
  const auto defaults = default_chunks(parsed, transport);
  const auto shard_kib = wire_places(parsed.wire, map.largest_shard()) * kFloatBytes / 1024;
  const auto kib = options.chunk_kib > 0 ? std::int64_t{options.chunk_kib}
                                         : std::clamp(shard_kib / kChunks, defaults.least_kib, defaults.most_kib);
  const auto lines = std::max<std::int64_t>(1, (map.largest_shard() + kLineElements - 1) / kLineElements);
  const std::int64_t values_per_place = parsed.wire == WireFormat::kFp32 ? 1 : 2;
  return {.elements = std::min(kib * 1024 / kFloatBytes * values_per_place, lines * kLineElements),
          .ring = options.ring > 0 ? options.ring : defaults.ring};
}

DataLayout make_layout(const SessionOptions& options, const ParsedOptions& parsed, const ShardMap& map,
                       const Chunking& chunking, std::uint32_t workers) {
  DataLayout layout;
  for (std::uint32_t m = 0; m < map.servers(); ++m)
    layout.shard_elements.push_back(wire_places(parsed.wire, map.shard_size(ServerIndex{m})));
  layout.chunk_elements = wire_places(parsed.wire, chunking.elements);
  layout.ring = chunking.ring;
  layout.workers = workers;
  layout.keys = options.pslite_keys;
  return layout;
}

std::int64_t window_bytes(const DataLayout& layout, std::uint32_t server) {
  return (layout.weights_elements(server) + layout.inbox_elements()) * kFloatBytes;
}

bool travels_inline(const SessionOptions& options, const ShardMap& map, ServerIndex server) {
  return !options.pslite_keys && options.wire == "fp32" && options.gpu_transfer == "off" &&
         map.shard_size(server) * kFloatBytes <= static_cast<std::int64_t>(kMaxInlineBytes);
}

ControllerOptions controller_options(const SessionOptions& options, const ParsedOptions& parsed,
                                     std::uint32_t workers) {
  ControllerOptions result;
  result.workers = workers;
  result.release = parsed.release;
  result.seed = options.seed;
  result.coin_per_server = parsed.coin_per_server;
  result.only_fastest = options.only_fastest;
  result.join = options.join;
  return result;
}

trace::Attributes trace_attributes(const SessionOptions& options, const Roles& roles, const ShardMap& map,
                                   const SyncPlan& plan, const TransportChoice& choice, const GpuChoice& gpu,
                                   const std::vector<std::uint32_t>& group_of_worker) {
  auto attributes = trace::provenance();
  const auto add = [&](const char* name, std::string value) { attributes.emplace_back(name, std::move(value)); };
  add("role", std::string(to_string(roles.role)));
  add("role_index", std::to_string(roles.index));
  add("rank", std::to_string(roles.job.rank()));
  add("servers", std::to_string(roles.server_count()));
  add("optimizer_at", options.server_optimizer ? "server" : "worker");
  add("workers", std::to_string(roles.worker_count()));
  add("local_group", options.local_group);
  if (!group_of_worker.empty()) add("group_of_worker", fmt::format("{}", fmt::join(group_of_worker, " ")));
  add("parameters", std::to_string(map.size()));
  add("sync", plan.canonical());
  add("release", options.release);
  add("coordination", options.coordination);
  add("coin", options.coin);
  add("fastest", options.only_fastest ? "1" : "0");
  add("join", options.join ? "1" : "0");
  add("staleness_scale", options.staleness_scale);
  add("slicing", options.slicing);
  add("wire", options.wire);
  add("pslite_keys", options.pslite_keys ? "1" : "0");
  add("shard_map", map.to_text());
  add("seed", std::to_string(options.seed));
  add("transport", std::string(to_string(choice.kind)));
  add("transport_reason", choice.reason);
  add("gpu_transfer", std::string(to_string(gpu.kind)));
  if (gpu.kind != GpuTransfer::kOff) {
    add("gpu_transfer_reason", gpu.reason);
    add("gpu", gpu.device);
    add("gpu_to_gb_s", fmt::format("{:.3f}", gpu.to_gpu_gb_s));
    add("gpu_from_gb_s", fmt::format("{:.3f}", gpu.from_gpu_gb_s));
  }
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> library{};
  int length = 0;
  FLUENTPS_MPI(MPI_Get_library_version(library.data(), &length));
  add("mpi_library", std::string(library.data(), static_cast<std::size_t>(length)));
  attributes.insert(attributes.end(), options.trace_attributes.begin(), options.trace_attributes.end());
  return attributes;
}

void send_floats(std::span<const float> values, int rank, int tag, MPI_Comm comm) {
  for (std::size_t at = 0; at < values.size(); at += kLargestMessage)
    FLUENTPS_MPI(MPI_Send(values.data() + at, static_cast<int>(std::min(kLargestMessage, values.size() - at)),
                          MPI_FLOAT, rank, tag, comm));
}

void receive_floats(std::span<float> values, int rank, int tag, MPI_Comm comm) {
  for (std::size_t at = 0; at < values.size(); at += kLargestMessage)
    FLUENTPS_MPI(MPI_Recv(values.data() + at, static_cast<int>(std::min(kLargestMessage, values.size() - at)),
                          MPI_FLOAT, rank, tag, comm, MPI_STATUS_IGNORE));
}

}  // namespace fluentps
