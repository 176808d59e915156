/// The parser of --sync: what it accepts, prints back and refuses; the registry and the list of models.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fluentps/error.hpp"
#include "sync/list_models.hpp"
#include "sync/sync_plan.hpp"
#include "text/words.hpp"

namespace fluentps::test {
namespace {

std::string ruling(const SyncPlan& plan, std::uint32_t server) {
  std::string line;
  for (const auto& stretch : plan.stretches({server}))
    line += fmt::format("{}{}:{}", line.empty() ? "" : " ", stretch.from, stretch.model->spec());
  return line;
}

TEST(SyncPlan, says_which_model_rules_which_server_from_when) {
  const SyncPlan plan("ssp:s=3; server1=bsp; @2000 asp; server1@500=pssp:s=3,c=0.1", 4, 3);
  EXPECT_EQ(ruling(plan, 0), "0:ssp:s=3 2000:asp");
  // server1@500 stands after @2000 and holds from 500 on for ever.
  EXPECT_EQ(ruling(plan, 1), "0:bsp 500:pssp:s=3,c=0.1");
  EXPECT_EQ(ruling(plan, 2), "0:ssp:s=3 2000:asp");
}

TEST(SyncPlan, the_later_part_wins) {
  EXPECT_EQ(ruling(SyncPlan("bsp; server1=ssp:s=1; @100 asp", 4, 2), 1), "0:ssp:s=1 100:asp");
  EXPECT_EQ(ruling(SyncPlan("bsp; @100 asp; server1=ssp:s=1", 4, 2), 1), "0:ssp:s=1");
  EXPECT_EQ(ruling(SyncPlan("bsp; @100 asp; @100 ssp:s=2", 4, 1), 0), "0:bsp 100:ssp:s=2");
  EXPECT_EQ(ruling(SyncPlan("bsp; @0 asp", 4, 1), 0), "0:asp");
}

TEST(SyncPlan, models_are_not_shared_between_servers) {
  const SyncPlan plan("dssp:low=1,high=3", 4, 2);
  EXPECT_NE(plan.stretches({0})[0].model, plan.stretches({1})[0].model);
}

TEST(SyncPlan, canonical_form_is_fixed_and_means_the_same) {
  const std::pair<std::string, std::string> cases[] = {
      {"bsp", "bsp"},
      {"  asp ", "asp"},
      {"ssp: s = 3", "ssp:s=3"},
      {"ssp:s=03", "ssp:s=3"},
      {"pssp:c=0.10,s=3", "pssp:s=3,c=0.1"},
      {"pssp:alpha=1e0,s=3", "pssp:s=3,alpha=1"},
      {"pssp:s=3,c=0.333333333333", "pssp:s=3,c=0.333333333333"},
      {"dssp:high=9,low=2", "dssp:low=2,high=9"},
      {"drop:n=3", "drop:n=3"},
      {"partial:fraction=.75", "partial:fraction=0.75"},
      {"partial:timeout_ms=20", "partial:timeout_ms=20"},
      {"psp:s=1,beta=2", "psp:beta=2,s=1"},
      {"softsync:n=2", "softsync:n=2"},
      {"ssp:s=3;server1=bsp;@2000  asp;server0 @ 7 = bsp", "ssp:s=3; server1=bsp; @2000 asp; server0@7=bsp"},
      {"bsp; server1@0=asp; @0 bsp", "bsp; server1=asp; @0 bsp"},
  };
  for (const auto& [text, canonical] : cases) {
    const SyncPlan plan(text, 4, 2);
    EXPECT_EQ(plan.canonical(), canonical);
    const SyncPlan again(canonical, 4, 2);
    EXPECT_EQ(again.canonical(), canonical);
    for (const std::uint32_t server : {0U, 1U}) EXPECT_EQ(ruling(again, server), ruling(plan, server)) << text;
  }
}

TEST(SyncPlan, refuses_mistakes_in_a_sentence_that_mends_them) {
  const std::pair<std::string, std::string> cases[] = {
      {"spp:s=3", "there is no model 'spp', the nearest is 'ssp'"},
      {"SSP:s=3", "there is no model 'SSP'"},
      {"softsink:n=2", "the nearest is 'softsync'"},
      {"ssp", "the argument s is missing, write ssp:s=S"},
      {"ssp:s=-1", "s=-1 does not fit ssp:s=S, give an integer from 0"},
      {"ssp:s=two", "s=two does not fit"},
      {"ssp:s=1.5", "s=1.5 does not fit"},
      {"ssp:s=3,t=4", "unknown argument t=4"},
      {"ssp:s=3,s=4", "given twice"},
      {"ssp:s", "'s' in 'ssp:s' is no argument"},
      {"ssp:", "is no argument, write key=value"},
      {"ssp:s=3,", "is no argument"},
      {"bsp:s=0", "bsp takes no arguments, found s=0"},
      {"pssp:s=3,c=0", "a number above 0 and at most 1"},
      {"pssp:s=3,c=1.01", "c=1.01 does not fit"},
      {"pssp:s=3,c=nan", "c=nan does not fit"},
      {"pssp:s=3,alpha=-1", "alpha=-1 does not fit"},
      {"pssp:s=3", "found neither c nor alpha"},
      {"pssp:s=3,c=0.5,alpha=1", "found both c and alpha"},
      {"pssp:c=0.5", "the argument s is missing"},
      {"dssp:low=3,high=2", "high=2 does not fit"},
      {"drop:n=4", "n=4 does not fit drop:n=M, give an integer from 1 to 3"},
      {"drop:n=0", "n=0 does not fit"},
      {"partial", "found neither fraction nor timeout_ms"},
      {"partial:fraction=0", "fraction=0 does not fit"},
      {"partial:timeout_ms=-5", "timeout_ms=-5 does not fit"},
      {"psp:beta=5,s=1", "beta=5 does not fit"},
      {"softsync:n=5", "n=5 does not fit"},
      {"", "an empty part"},
      {"bsp;", "an empty part"},
      {"bsp;;asp", "an empty part"},
      {"server1=bsp", "begin with the model of all servers"},
      {"@5 bsp", "begin with the model of all servers"},
      {"bsp; server2=asp", "server2 does not exist, the servers of this run are server0 to server1"},
      {"bsp; serverX=asp", "names no server"},
      {"bsp; server-1=asp", "names no server"},
      {"bsp; server1", "a model is missing"},
      {"bsp; server1@=asp", "'' in 'server1@=asp' is no iteration"},
      {"bsp; server1@-3=asp", "'-3' in 'server1@-3=asp' is no iteration"},
      {"bsp; @20x asp", "'20x' in '@20x asp' is no iteration"},
      {"bsp; @-1 asp", "is no iteration"},
      {"bsp; @99999999999999999999 asp", "is no iteration"},
      {"bsp; @20", "a model is missing"},
  };
  for (const auto& [text, part] : cases) {
    try {
      SyncPlan(text, 4, 2);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const UsageError& error) {
      const std::string found = error.what();
      EXPECT_NE(found.find(part), std::string::npos) << "'" << text << "': " << found;
      EXPECT_EQ(found.rfind("--sync: ", 0), 0U) << found;
    }
  }
  EXPECT_THROW(SyncPlan("drop:n=1", 1, 1), UsageError);
}

TEST(Registry, refuses_a_name_taken) {
  EXPECT_THROW(
      register_sync_model({.name = "bsp", .signature = {}, .answers = {}, .advances = {}, .source = {}, .make = {}}),
      std::logic_error);
}

TEST(Nearest, goes_by_edit_distance) {
  EXPECT_EQ(nearest_name("psspp", {"bsp", "pssp", "asp"}), "pssp");
  EXPECT_EQ(nearest_name("bps", {"asp", "bsp"}), "bsp");
}

TEST(ListSync, shows_every_model_release_and_option) {
  const auto text = list_sync_models();
  for (const auto& model : sync_models())
    for (const auto& part : {model.signature, model.answers, model.advances, model.source})
      EXPECT_NE(text.find(part), std::string::npos) << part;
  for (const auto* word : {"soft", "lazy", "--fastest", "--join", "--coin per-server", "serverK@I=SPEC"})
    EXPECT_NE(text.find(word), std::string::npos) << word;
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace fluentps::test
