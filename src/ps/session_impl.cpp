#include "ps/session_impl.hpp"

#include <fmt/format.h>

#include "gpu/open_device.hpp"
#include "net/agree.hpp"
#include "net/ending.hpp"
#include "net/gpu_preflight.hpp"
#include "net/mpi_yield.hpp"
#include "net/preflight.hpp"
#include "ps/checkpoint.hpp"
#include "ps/device_group.hpp"
#include "shard/shard_layers.hpp"
#include "trace/run_dir.hpp"

namespace fluentps {

void Session::Impl::open(MPI_Comm parent) {
  const auto& given = options;
  roles.job = Comm::duplicate(parent);
  agree(roles.job.get(), [&] { parsed = parse(given); });
  split_roles(given.servers, parsed.placement, roles);
  require_same(roles.job.get(), to_text(given) + given.configuration);
  if (given.prepare)
    agree(roles.job.get(), [&] {
      if (!is_server()) options.tensors = given.prepare(WorkerIndex{roles.index}, roles.worker_count());
    });
  if (parsed.group.local) set_up_groups();
  tensors = share_tensors(roles, options.tensors);
  map.emplace(tensors, roles.server_count(), parsed.slicing);
  agree(roles.job.get(), [&] { plan.emplace(given.sync, parties().worker_count(), roles.server_count()); });
  agree(roles.job.get(), [&] {
    if (given.server_optimizer && given.server_optimizer->name == "lars") require_whole_tensors(tensors, *map);
  });
  if (!given.resume.empty()) resumed = open_checkpoint(roles, given.resume, tensors, given.seed);
}

void Session::Impl::start() {
  set_up_data_plane();
  clock.synchronize(roles.job.get());
  if (!options.out.empty()) {
    run_dir = claim_run_dir(roles, options);
    agree(roles.job.get(), [&] { set_up_trace(); });
  }
  checkpoint_root = options.checkpoint_dir;
  if (checkpoint_root.empty() && !run_dir.empty()) checkpoint_root = run_dir + "/checkpoints";
  agree(roles.job.get(), [&] {
    if (is_server())
      make_server();
    else
      make_worker();
  });
}

/// One GPU for each rank, by its number in its node.
void Session::Impl::open_gpu() {
  if (parsed.gpu_transfer == GpuTransfer::kOff) return;
  device = options.device;
  if (!device) check_gpus(roles, look_at_gpus(roles.node.rank()));
  agree(roles.job.get(), [&] {
    if (!device) device = open_device(roles.node.rank());
  });
  gpu = choose_gpu_transfer(roles, choice.kind, parsed.gpu_transfer, *device);
}

void Session::Impl::set_up_groups() {
  group_of_worker = assign_groups(node_of_worker(roles), parsed.group);
  leaders = keep_leaders(roles, group_of_worker);
  if (!is_server())
    group_comm =
        Comm::split(roles.workers.get(), static_cast<int>(group_of_worker[roles.index]), static_cast<int>(roles.index));
  if (options.iterations) check_iterations(roles, group_comm, is_server() ? 0 : options.iterations());
}

void Session::Impl::choose() {
  if (!grouped()) {
    choice = choose_transport(roles, parsed.transport);
    return;
  }
  agree(roles.job.get(), [&] {
    if (exchanges()) choice = choose_transport(leaders, parsed.transport);
  });
  choice = share_choice(roles, choice);
}

/// Who moves the data, in what pieces, and where they lie.
void Session::Impl::lay_out() {
  choose();
  chunking = choose_chunking(options, parsed, *map, choice);
  layout = make_layout(options, parsed, *map, chunking, parties().worker_count());
}

void Session::Impl::set_up_data_plane() {
  lay_out();
  open_gpu();
  const bool direct = gpu.kind == GpuTransfer::kDirect;
  const bool one_sided = choice.kind == TransportKind::kRma;
  if (one_sided && !direct) check_window_memory(roles, is_server() ? window_bytes(layout, roles.index) : 0);
  const Waiter waiter(parsed.wait, more_ranks_than_cores(roles), mpi_yields());
  if (exchanges()) {
    const auto& ours = parties();
    transport = direct      ? make_rma_transport(ours, layout, *device)
                : one_sided ? make_rma_transport(ours, layout)
                            : make_p2p_transport(ours, layout);
    channel = std::make_unique<ControlChannel>(ours.job.get(), is_server() ? ours.rank_of_worker : ours.rank_of_server,
                                               waiter, clock);
  }
  if (group_comm) group = make_mpi_group(std::move(group_comm), waiter, clock);
  if (group && device) group = make_device_group(std::move(group), *device);
}

void Session::Impl::set_up_trace() {
  trace::WriterOptions writer;
  writer.path = run_dir + "/" + trace::rank_file_name(roles.job.rank());
  writer.flush_ns = static_cast<std::int64_t>(options.trace_flush_s * 1e9);
  writer.clock_offset_ns = clock.offset_ns();
  writer.attributes = trace_attributes(options, roles, *map, *plan, choice, gpu, group_of_worker);
  writer.attributes.emplace_back("first_iteration", std::to_string(resumed ? resumed->iteration : 0));
  if (is_server())
    server_trace = std::make_unique<trace::ServerTrace>(writer);
  else
    worker_trace = std::make_unique<trace::WorkerTrace>(writer);
}

void Session::Impl::make_server() {
  ServerOptions settings;
  settings.index = ServerIndex{roles.index};
  settings.chunk_elements = chunking.elements;
  settings.shard_elements = map->shard_size(settings.index);
  settings.wire = parsed.wire;
  settings.device = device.get();
  settings.direct = gpu.kind == GpuTransfer::kDirect;
  settings.ring = chunking.ring;
  settings.inline_data = travels_inline(options, *map, settings.index);
  settings.schedules = parsed.central && roles.index == 0;
  settings.staleness_scale = parsed.staleness_scale;
  settings.stall_ns = static_cast<std::int64_t>(options.stall_s * 1e9);
  // The leader of a local group sees more than a server does; it gets time to say so first.
  settings.abort_ns = static_cast<std::int64_t>((options.abort_s + (grouped() ? 1 : 0)) * 1e9);
  settings.controller = controller_options(options, parsed, parties().worker_count());
  for (std::uint32_t g = 0; grouped() && g < leaders.worker_count(); ++g)
    settings.worker_names.push_back(group_name(group_of_worker, g));
  settings.controller.first_iteration = resumed ? resumed->iteration : 0;
  settings.optimizer = options.server_optimizer;
  settings.layers = shard_layers(tensors, *map, settings.index);
  if (!checkpoint_root.empty())
    settings.checkpoint = [this](Iteration iteration, const State& state) {
      return write_part(checkpoint_root, iteration, server_file(roles.index), state);
    };
  settings.stop_wanted = options.stop_wanted;
  settings.poll = poll();
  server = std::make_unique<Server>(settings, *plan, *channel, *transport, clock, server_trace.get());
  if (resumed) {
    read_shard(*resumed, *map, settings.index, server->state());
    server->adopt_state();
  }
}

void Session::Impl::make_worker() {
  if (exchanges()) make_client();
  worker = client.get();
  if (grouped()) make_group_worker();
}

void Session::Impl::make_group_worker() {
  GroupOptions settings;
  settings.index = WorkerIndex{roles.index};
  settings.workers = roles.worker_count();
  settings.groups = leaders.worker_count();
  settings.members = members_of(group_of_worker, group_of_worker[roles.index]);
  settings.parameters = map->size();
  settings.device = device.get();
  settings.first_iteration = resumed ? resumed->iteration : 0;
  settings.poll = poll();
  settings.stall_ns = static_cast<std::int64_t>(options.stall_s * 1e9);
  // Who only waits for the leader gives it time to say first what it waits for.
  settings.abort_ns = static_cast<std::int64_t>((options.abort_s + (client ? 0 : 4)) * 1e9);
  group_worker = std::make_unique<GroupWorker>(settings, *group, client.get(), clock, worker_trace.get());
  worker = group_worker.get();
}

void Session::Impl::make_client() {
  WorkerOptions settings;
  settings.index = WorkerIndex{parties().index};
  settings.name = grouped() ? group_name(group_of_worker, leaders.index) : fmt::format("worker {}", roles.index);
  settings.workers = parties().worker_count();
  settings.chunk_elements = chunking.elements;
  settings.wire = parsed.wire;
  settings.device = device.get();
  settings.direct = gpu.kind == GpuTransfer::kDirect;
  settings.ring = chunking.ring;
  for (std::uint32_t m = 0; m < roles.server_count(); ++m)
    settings.inline_data.push_back(travels_inline(options, *map, ServerIndex{m}));
  settings.keys = options.pslite_keys;
  settings.central = parsed.central;
  settings.first_iteration = resumed ? resumed->iteration : 0;
  settings.stop_wanted = options.stop_wanted;
  settings.poll = poll();
  settings.stall_ns = static_cast<std::int64_t>(options.stall_s * 1e9);
  // The servers see more than a worker does; it gives them time to say so first.
  settings.abort_ns = static_cast<std::int64_t>((options.abort_s + 2) * 1e9);
  client = std::make_unique<WorkerClient>(settings, *map, *channel, *transport, clock, worker_trace.get());
}

std::function<void()> Session::Impl::poll() const {
  return [this] {
    end_if_told();
    if (options.poll) options.poll();
  };
}

void Session::Impl::leave() {
  if (group_worker)
    group_worker->leave();
  else
    client->leave();
}

std::string Session::Impl::preflight() {
  lay_out();
  const bool exposes = is_server() && choice.kind == TransportKind::kRma;
  const auto facts = look_at_node(roles, exposes ? window_bytes(layout, roles.index) : 0);
  agree(roles.job.get(), [&] { require_room(facts, roles.hosts[static_cast<std::size_t>(roles.job.rank())]); });
  open_gpu();
  auto table = preflight_table(roles, facts);
  if (device) {
    if (!options.device) table += gpu_table(roles, look_at_gpus(roles.node.rank()));
    table += fmt::format("GPU transfer {}\n", gpu.to_text());
  }
  if (roles.job.rank() != 0) return "";
  const auto groups = grouped() ? fmt::format(" in {} local groups", leaders.worker_count()) : "";
  return fmt::format("{} servers, {} workers{}, {} parameters, sync {}\n{}transport {}: {}\n{}preflight passed\n",
                     roles.server_count(), roles.worker_count(), groups, map->size(), plan->canonical(), map->to_text(),
                     to_string(choice.kind), choice.reason, table);
}

}  // namespace fluentps
