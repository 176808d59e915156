/// The text of `fluentps-train --list-sync`.
#include "sync/list_models.hpp"

#include <fmt/format.h>

#include "fluentps/sync_model.hpp"

namespace fluentps {

std::string list_sync_models() {
  std::string text =
      "Synchronization models (--sync). N workers; i: iteration of a pull; V: smallest iteration that not every "
      "worker\n"
      "has pushed; k = i-V; coin: uniform in [0,1), one per seed, worker and iteration.\n\n";
  for (const auto& model : sync_models())
    text += fmt::format("  {}\n      answers a pull  {}\n      advances V      {}\n      source          {}\n",
                        model.signature, model.answers, model.advances, model.source);
  text +=
      "\nRelease of delayed pulls (--release)\n"
      "  lazy    when every worker has pushed the requester's iteration, V > i\n"
      "  soft    as soon as the condition holds again, i < V+s; no coin is drawn a second time\n"
      "\nOptions\n"
      "  --fastest            only a worker that is (one of) the fastest may be delayed\n"
      "  --join               a pull at i is also delayed if another one already waits at i\n"
      "  --coin per-server    a coin for each server, not one for all\n"
      "\nServers and iterations\n"
      "  SPEC; @I SPEC; serverK=SPEC; serverK@I=SPEC    each part holds from its iteration on; a later part wins\n"
      "  e.g. --sync \"ssp:s=3; server1=bsp; @2000 asp\"\n";
  return text;
}

}  // namespace fluentps
