#include "fluentps/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "fluentps/error.hpp"
#include "net/agree.hpp"
#include "ps/checkpoint.hpp"
#include "ps/session_impl.hpp"
#include "trace/merge.hpp"

namespace fluentps {

namespace {

/// A refusal is the same on all ranks, so what `impl` has made, communicators too, can be freed before it is passed on:
/// not while the exception unwinds, when a destructor cannot know that.
template <typename Impl>
void free_if_refused(std::unique_ptr<Impl>& impl, const std::function<void()>& step) {
  std::string refusal;
  try {
    step();
    return;
  } catch (const UsageError& error) {
    refusal = error.what();
  }
  impl.reset();
  throw UsageError(refusal);
}

}  // namespace

Session::Session(MPI_Comm parent, const SessionOptions& options) : impl_(std::make_unique<Impl>(options)) {
  free_if_refused(impl_, [&] {
    impl_->open(parent);
    impl_->start();
  });
}

std::string Session::preflight(MPI_Comm parent, const SessionOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  std::string report;
  free_if_refused(impl, [&] {
    impl->open(parent);
    report = impl->preflight();
  });
  return report;
}

Session::~Session() {
  if (std::uncaught_exceptions() > 0) {
    // Traces are closed file by file; communicators and windows need all ranks and are left to MPI_Abort.
    impl_->server_trace.reset();
    impl_->worker_trace.reset();
  }
}

bool Session::is_server() const { return impl_->is_server(); }
std::uint32_t Session::index() const { return impl_->roles.index; }
std::uint32_t Session::servers() const { return impl_->roles.server_count(); }
std::uint32_t Session::workers() const { return impl_->roles.worker_count(); }
std::uint32_t Session::groups() const { return impl_->parties().worker_count(); }
MPI_Comm Session::job() const { return impl_->roles.job.get(); }
MPI_Comm Session::own() const { return (is_server() ? impl_->roles.servers : impl_->roles.workers).get(); }
Clock& Session::clock() { return impl_->clock; }
std::string Session::name() const { return impl_->roles.name(); }
std::string Session::shard_table() const { return impl_->map->to_text(); }
std::string Session::run_dir() const { return impl_->run_dir; }
trace::WorkerTrace* Session::worker_trace() { return impl_->worker_trace.get(); }

std::string Session::transport() const {
  return fmt::format("{}: {}", to_string(impl_->choice.kind), impl_->choice.reason);
}

std::string Session::gpu_transfer() const { return impl_->device ? impl_->gpu.to_text() : ""; }
Device* Session::device() const { return impl_->device.get(); }

void Session::run(const std::function<void(Worker&)>& body) {
  try {
    if (is_server()) {
      impl_->server->run();
    } else {
      body(*impl_->worker);
      impl_->leave();
    }
  } catch (const UsageError& error) {
    // Inside the run no other rank knows of it, so it cannot be everyone's usage error any more.
    throw RunError(error.what());
  }
  if (impl_->channel) impl_->channel->drain();
}

Iteration Session::first_iteration() const { return impl_->resumed ? impl_->resumed->iteration : 0; }

std::string Session::checkpoint(const State& own) {
  auto& impl = *impl_;
  if (impl.checkpoint_root.empty())
    throw RunError("a checkpoint has no folder to go to; give --checkpoint-dir, or --out for one in the run's folder");
  CheckpointWriter writer(impl.checkpoint_root, impl.worker->iteration(), impl.roles);
  writer.write_workers(own);
  if (impl.roles.index == 0) writer.add_servers(impl.client->checkpoint());
  Manifest manifest;
  manifest.tensors = impl.tensors;
  manifest.slicing = impl.options.slicing;
  manifest.sync = impl.plan->canonical();
  manifest.seed = impl.options.seed;
  return writer.finish(std::move(manifest), impl.options.keep_checkpoints);
}

void Session::restore(const State& own) {
  if (impl_->resumed) read_worker(*impl_->resumed, impl_->roles.index, own);
}

std::vector<float> Session::gather_weights() {
  constexpr int kTag = 4;
  auto& impl = *impl_;
  const int root = impl.roles.rank_of_worker[0];
  std::vector<float> all;
  if (impl.is_server()) {
    send_floats(impl.server->weights(), root, kTag, impl.roles.job.get());
  } else if (impl.roles.index == 0) {
    all.resize(static_cast<std::size_t>(impl.map->size()));
    for (std::uint32_t m = 0; m < impl.roles.server_count(); ++m) {
      std::vector<float> shard(static_cast<std::size_t>(impl.map->shard_size(ServerIndex{m})));
      receive_floats(shard, impl.roles.rank_of_server[m], kTag, impl.roles.job.get());
      for (const auto& slice : impl.map->slices(ServerIndex{m}))
        std::copy_n(shard.begin() + slice.shard_offset, slice.count, all.begin() + slice.offset);
    }
  }
  return all;
}

std::string Session::close_trace() {
  auto& impl = *impl_;
  if (impl.run_dir.empty()) return "";
  std::string merged;
  agree(impl.roles.job.get(), [&] {
    if (impl.server_trace) impl.server_trace->close();
    if (impl.worker_trace) impl.worker_trace->close();
  });
  agree(impl.roles.job.get(), [&] {
    if (impl.roles.job.rank() == 0) merged = trace::merge(impl.run_dir);
  });
  return merged;
}

SessionStatistics Session::statistics() const {
  SessionStatistics result;
  if (!is_server()) return result;
  const auto& own = impl_->server->statistics();
  result.pushes = own.pushes;
  result.pulls = own.pulls;
  result.delayed_pulls = own.delayed_pulls;
  result.dropped_pushes = own.dropped_pushes;
  result.bytes = own.bytes;
  result.staleness_mean = own.pushes > 0 ? own.staleness_sum / static_cast<double>(own.pushes) : 0;
  result.staleness_max = own.staleness_max;
  return result;
}

}  // namespace fluentps
