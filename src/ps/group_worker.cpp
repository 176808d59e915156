#include "ps/group_worker.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <type_traits>

#include "fluentps/error.hpp"
#include "net/simulated.hpp"
#include "ps/worker_call.hpp"
#include "shard/device_memory.hpp"

namespace fluentps {
namespace {

/// What the leader tells of a pull.
struct PullNews {
  Transfer transfer;
  Iteration stop_at = 0;
};
static_assert(std::is_trivially_copyable_v<PullNews>, "it travels as bytes");

}  // namespace

GroupWorker::GroupWorker(const GroupOptions& options, LocalGroup& group, WorkerClient* client, Clock& clock,
                         trace::WorkerTrace* trace)
    : options_(options),
      group_(group),
      client_(client),
      clock_(clock),
      trace_(trace),
      next_iteration_(options.first_iteration) {}

const char* GroupWorker::name_of(Step step) {
  switch (step) {
    case Step::kInitialize:
      return "initializes";
    case Step::kPush:
      return "pushes";
    case Step::kPull:
      return "pulls";
    case Step::kPushPull:
      return "pushes and pulls";
    case Step::kLeave:
      return "leaves";
  }
  return "?";
}

void GroupWorker::initialize(std::span<float> weights) {
  require_first_initialize(options_.index, initialized_);
  initialized_ = true;
  require_call({options_.index, "initialize", initialized_, weights.size(), options_.parameters});
  meet(Step::kInitialize);
  if (leads()) client_->initialize(weights);
  share(weights);
}

void GroupWorker::push(std::span<const float> update) {
  require_call({options_.index, "push", initialized_, update.size(), options_.parameters});
  own_ = {};
  meet(Step::kPush);
  sum_up(update);
  if (leads()) client_->push(sum_);
  ++next_iteration_;
  tell(leads() ? client_->last_transfer() : Transfer{});
}

void GroupWorker::pull(std::span<float> weights) {
  require_call({options_.index, "pull", initialized_, weights.size(), options_.parameters});
  meet(Step::kPull);
  if (leads()) client_->pull(weights);
  share(weights);
}

void GroupWorker::push_pull(std::span<const float> update, std::span<float> weights) {
  require_call({options_.index, "push_pull", initialized_, update.size(), options_.parameters});
  require_call({options_.index, "push_pull", initialized_, weights.size(), options_.parameters});
  require_apart(options_.index, update, weights);
  own_ = {};
  meet(Step::kPushPull);
  sum_up(update);
  if (leads()) client_->push_pull(sum_, weights);
  ++next_iteration_;
  share(weights);
}

void GroupWorker::set_lr(double lr) {
  if (leads()) client_->set_lr(lr);
}

void GroupWorker::request_stop() {
  stop_wanted_ = true;
  if (leads()) client_->request_stop();
}

void GroupWorker::leave() {
  meet(Step::kLeave);
  if (leads()) client_->leave();
}

/// The servers add 1/G of what a group pushes; the sum of all groups is to weigh 1/N of each worker's update.
void GroupWorker::sum_up(std::span<const float> update) {
  const auto begin_ns = clock_.now_ns();
  place_sum(update);
  group_.reduce(update, sum_);
  const auto scale = static_cast<float>(static_cast<double>(options_.groups) / options_.workers);
  passes::scale(*memory_, sum_, scale);
  memory_->finish();
  own_.push_ns += clock_.now_ns() - begin_ns;
}

void GroupWorker::place_sum(std::span<const float> update) {
  const bool on_device = options_.device != nullptr && options_.device->owns(update.data());
  if (memory_ && memory_->on_host() != on_device) return;
  if (on_device)
    memory_ = std::make_unique<DeviceMemory>(*options_.device);
  else
    memory_ = std::make_unique<HostMemory>();
  sum_ = memory_->allocate(leads() ? update.size() : 0);
}

void GroupWorker::share(std::span<float> weights) {
  PullNews news;
  if (leads()) {
    news = {client_->last_transfer(), client_->stop_at()};
    for (std::uint32_t member = 1; member < group_.size(); ++member)
      group_.control().send(member, {.kind = MessageKind::kPulled, .iteration = next_iteration_},
                            std::as_bytes(std::span(&news, 1)));
  } else {
    const auto begin_ns = clock_.now_ns();
    const auto leader = fmt::format("worker {}", options_.members[0]);
    const auto message = await("the weights of its local group", [&leader] { return leader; });
    if (message.header.kind != MessageKind::kPulled || message.payload.size() != sizeof(news))
      throw ProtocolError(fmt::format("worker {} got a {} of {} bytes from its leader where weights were due",
                                      options_.index.value, to_string(message.header.kind), message.payload.size()));
    std::memcpy(&news, message.payload.data(), sizeof(news));
    // Nothing went between this rank and a server.
    news.transfer.push_ns = news.transfer.wait_ns = news.transfer.pull_ns = 0;
    news.transfer.bytes = 0;
    own_.wait_ns += clock_.now_ns() - begin_ns;
  }
  const auto begin_ns = clock_.now_ns();
  group_.broadcast(weights);
  own_.pull_ns += clock_.now_ns() - begin_ns;
  stop_at_ = news.stop_at;
  tell(news.transfer);
}

void GroupWorker::tell(const Transfer& exchanged) {
  transfer_ = exchanged;
  transfer_.push_ns += own_.push_ns;
  transfer_.wait_ns += own_.wait_ns;
  transfer_.pull_ns += own_.pull_ns;
}

/// Collectives begin when everyone is there: a member that is late, or does something else, is waited for here, where
/// it can be named.
void GroupWorker::meet(Step step) {
  const auto begin_ns = clock_.now_ns();
  if (leads()) {
    gather(step);
  } else {
    Header header{.kind = MessageKind::kMeet, .slot = static_cast<std::uint32_t>(step), .iteration = next_iteration_};
    if (stop_wanted_) header.flags |= kStopWanted;
    group_.control().send(0, header);
    const auto leader = fmt::format("worker {}, its leader", options_.members[0]);
    const auto message = await("the other members of its local group", [&leader] { return leader; });
    if (message.header.kind != MessageKind::kMet)
      throw ProtocolError(fmt::format("worker {} got a {} from its leader where a met was due", options_.index.value,
                                      to_string(message.header.kind)));
  }
  own_.wait_ns += clock_.now_ns() - begin_ns;
}

void GroupWorker::gather(Step step) {
  std::vector<bool> here(group_.size(), false);
  here[0] = true;
  for (std::uint32_t others = 1; others < group_.size(); ++others) {
    const auto message = await("the other members of its local group", [&] { return missing(here); });
    compare(message, step);
    here[message.peer] = true;
    if ((message.header.flags & kStopWanted) != 0) client_->request_stop();
  }
  for (std::uint32_t member = 1; member < group_.size(); ++member)
    group_.control().send(member, {.kind = MessageKind::kMet, .iteration = next_iteration_});
}

void GroupWorker::compare(const Message& message, Step step) const {
  const auto theirs = static_cast<Step>(message.header.slot);
  if (message.header.kind == MessageKind::kMeet && theirs == step && message.header.iteration == next_iteration_)
    return;
  throw RunError(
      fmt::format("worker {} {} at iteration {} while worker {} of the same local group {} at iteration {}; the "
                  "members of a group push, pull and leave together: give them the same iterations, or use "
                  "--local-group none",
                  options_.members[message.peer], name_of(theirs), message.header.iteration, options_.index.value,
                  name_of(step), next_iteration_));
}

std::string GroupWorker::missing(const std::vector<bool>& here) const {
  std::string text;
  for (std::size_t member = 0; member < here.size(); ++member)
    if (!here[member]) text += fmt::format("{}worker {}", text.empty() ? "" : ", ", options_.members[member]);
  return text;
}

Message GroupWorker::await(const std::string& what, const std::function<std::string()>& whom) {
  const auto begin_ns = clock_.now_ns();
  auto now_ns = begin_ns;
  auto report_ns = begin_ns + options_.stall_ns;
  while (true) {
    if (const auto message = group_.control().receive(now_ns + kLookAround_ns)) return *message;
    now_ns = clock_.now_ns();
    if (options_.poll) options_.poll();
    if (trace_ != nullptr) trace_->maybe_flush(now_ns);
    const auto text = [&] {
      return fmt::format("worker {} has waited {:.1f} s for {} (iteration {}, not heard of: {})", options_.index.value,
                         static_cast<double>(now_ns - begin_ns) * 1e-9, what, next_iteration_, whom());
    };
    if (now_ns - begin_ns >= options_.abort_ns) throw RunError(text() + "; --abort-s is the limit");
    if (now_ns < report_ns) continue;
    report_ns = now_ns + options_.stall_ns;
    std::fputs(fmt::format("stall: {}\n", text()).c_str(), stderr);
  }
}

}  // namespace fluentps
