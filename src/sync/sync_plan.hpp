/// The parsed `--sync` option: which model rules which server from which iteration on.
///
///   ssp:s=3; server1=bsp; @2000 asp; server1@500=pssp:s=3,c=0.1
///
/// Parts are separated by ';'. The first names the model of all servers from iteration 0. `@I SPEC` changes all servers
/// from iteration I on, `serverK=SPEC` one server from 0, `serverK@I=SPEC` one server from I. Each part holds from its
/// iteration on for ever, unless a later part says otherwise: the later part wins.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fluentps/sync_model.hpp"
#include "fluentps/types.hpp"

namespace fluentps {

class SyncPlan {
 public:
  /// Throws UsageError: unknown model (names the nearest valid one), bad argument, server index >= servers, a part that
  /// is empty or malformed, a first part that is an exception.
  SyncPlan(std::string_view text, std::uint32_t workers, std::uint32_t servers);

  /// One stretch of iterations of one server.
  struct Stretch {
    Iteration from = 0;
    std::shared_ptr<SyncModel> model;  ///< a fresh one: not shared between servers
  };
  /// Stretches of this server, by rising `from`, the first from 0.
  std::vector<Stretch> stretches(ServerIndex server) const;

  /// Printed back in canonical form; parsing it again gives the same plan.
  std::string canonical() const;

 private:
  struct Part {
    std::optional<ServerIndex> server;
    Iteration from = 0;
    std::string model;  ///< its spec, canonical
  };
  std::vector<Part> parts_;
  std::uint32_t workers_;
};

/// One model from one spec ("pssp:s=3,c=0.1"). Throws UsageError.
std::unique_ptr<SyncModel> make_sync_model(std::string_view spec, std::uint32_t workers);

}  // namespace fluentps
