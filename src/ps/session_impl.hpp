/// What a session holds, and the steps in which it is made (session_impl.cpp); session.cpp has what users call.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fluentps/session.hpp"
#include "net/control_channel.hpp"
#include "net/groups.hpp"
#include "net/local_group.hpp"
#include "net/mpi_clock.hpp"
#include "net/roles.hpp"
#include "net/transport.hpp"
#include "ps/group_worker.hpp"
#include "ps/manifest.hpp"
#include "ps/server.hpp"
#include "ps/session_setup.hpp"
#include "ps/worker_client.hpp"

namespace fluentps {

struct Session::Impl {
  explicit Impl(const SessionOptions& given) : options(given) {}

  void open(MPI_Comm parent);
  void start();
  void open_gpu();
  std::string preflight();
  void set_up_groups();
  void choose();
  void lay_out();
  void set_up_data_plane();
  void set_up_trace();
  void make_server();
  void make_worker();
  void make_client();
  void make_group_worker();
  void leave();
  std::function<void()> poll() const;
  bool is_server() const { return roles.role == Role::kServer; }
  /// Without local groups all ranks, else servers and leaders: who pushes, pulls and serves.
  const Roles& parties() const { return grouped() ? leaders : roles; }
  bool grouped() const { return !group_of_worker.empty(); }
  bool exchanges() const { return static_cast<bool>(parties().job); }

  SessionOptions options;
  Roles roles;
  std::vector<std::uint32_t> group_of_worker;  ///< empty without local groups
  Roles leaders;
  Comm group_comm;  ///< of a worker in a local group, until the group is made
  MpiClock clock;
  ParsedOptions parsed;
  std::vector<TensorSpec> tensors;
  std::optional<ShardMap> map;
  std::optional<SyncPlan> plan;
  TransportChoice choice;
  Chunking chunking;
  DataLayout layout;
  std::string run_dir;
  std::optional<Manifest> resumed;
  std::shared_ptr<Device> device;  ///< null: no GPUs
  GpuChoice gpu;
  std::string checkpoint_root;  ///< empty: none can be written
  std::unique_ptr<Transport> transport;
  std::unique_ptr<ControlChannel> channel;
  std::unique_ptr<trace::ServerTrace> server_trace;
  std::unique_ptr<trace::WorkerTrace> worker_trace;
  std::unique_ptr<Server> server;
  std::unique_ptr<WorkerClient> client;  ///< null on servers, and on members of a local group that do not lead it
  std::unique_ptr<LocalGroup> group;
  std::unique_ptr<GroupWorker> group_worker;
  Worker* worker = nullptr;
};

}  // namespace fluentps
