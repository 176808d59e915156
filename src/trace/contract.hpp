/// What a run promised: the plan of its attributes, and which of it a trace can prove.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sync/controller.hpp"
#include "sync/sync_plan.hpp"
#include "trace/reader.hpp"
#include "trace/verify.hpp"

namespace fluentps::trace {

/// How far the condition of a model can be judged from V, progress and coin.
enum class Proof {
  kExact,  ///< all of it
  kBound,  ///< the model remembers more than a trace holds: only i < V + bound
  kNone    ///< a model of the user's: nothing
};

struct Stretch {
  Iteration from = 0;
  std::shared_ptr<SyncModel> model;  ///< null where this program does not know it
  Proof proof = Proof::kNone;
  Iteration bound = 0;
  bool advances_at_once = false;  ///< V moves with the push that completes it; else time can move it as well
};

class Contract {
 public:
  /// Throws UsageError: no workers, no servers, unknown release.
  explicit Contract(const RunData& run);

  std::uint32_t workers() const { return workers_; }
  /// Those whose pushes a server counts: the workers, or their local groups.
  std::uint32_t pushers() const { return groups_.empty() ? workers_ : pushers_; }
  /// Whose pushes hold this worker's: itself, or its group. `worker` below workers().
  std::uint32_t pusher_of(std::uint32_t worker) const { return groups_.empty() ? worker : groups_[worker]; }
  /// Whether this worker exchanges with the servers itself: the first of its group does.
  bool exchanges(std::uint32_t worker) const;
  bool grouped() const { return !groups_.empty(); }
  std::uint32_t servers() const { return servers_; }
  Release release() const { return release_; }
  bool only_fastest() const { return only_fastest_; }
  bool join() const { return join_; }
  std::uint64_t parameters() const { return parameters_; }
  /// Of a resumed run: verify counts iterations and V from it.
  Iteration first_iteration() const { return first_iteration_; }
  /// Of one server, by rising `from`, counted from first_iteration; one of unknown model where the plan cannot be read.
  std::vector<Stretch> stretches(std::uint32_t server) const;
  static const Stretch& at(const std::vector<Stretch>& stretches, Iteration i);
  /// The seed of this server's coin (src/sync/clocks.hpp).
  std::uint64_t coin_seed(std::uint32_t server) const;
  /// Tells in the verification what is proved and what is not.
  void describe(std::uint32_t server, Verification& verification) const;

 private:
  std::uint32_t workers_ = 0;
  std::uint32_t servers_ = 0;
  std::vector<std::uint32_t> groups_;  ///< by worker; empty without local groups
  std::uint32_t pushers_ = 0;
  std::uint64_t seed_ = 1;
  std::uint64_t parameters_ = 0;
  Iteration first_iteration_ = 0;
  Release release_ = Release::kLazy;
  bool coin_per_server_ = false;
  bool only_fastest_ = false;
  bool join_ = false;
  std::optional<SyncPlan> plan_;
  std::string plan_failure_;
};

}  // namespace fluentps::trace
