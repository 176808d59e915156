/// Who is in which local group: plain arithmetic on invented nodes.
#include "net/groups.hpp"

#include <gtest/gtest.h>

#include "fluentps/error.hpp"

namespace fluentps {
namespace {

using Groups = std::vector<std::uint32_t>;

Groups assign(const std::vector<int>& nodes, const char* rule) { return assign_groups(nodes, parse_group_rule(rule)); }

TEST(Groups, TheWorkersOfANodeAreOneGroup) {
  EXPECT_EQ(assign({0, 0, 3, 3}, "node"), (Groups{0, 0, 1, 1}));
  // Ranks dealt out round robin: groups are numbered by their first workers.
  EXPECT_EQ(assign({7, 2, 7, 2, 5}, "node"), (Groups{0, 1, 0, 1, 2}));
}

TEST(Groups, ASizeCutsTheWorkersOfANodeAndNeverSpansTwo) {
  EXPECT_EQ(assign({0, 0, 0, 0, 0}, "size=3"), (Groups{0, 0, 0, 1, 1}));
  EXPECT_EQ(assign({0, 0, 0, 4, 4, 4}, "size=2"), (Groups{0, 0, 1, 2, 2, 3}));
  EXPECT_EQ(assign({0, 1, 0, 1, 0, 1}, "size=2"), (Groups{0, 1, 0, 1, 2, 3}));
  EXPECT_EQ(assign({0, 0, 0}, "size=1"), (Groups{0, 1, 2}));
  EXPECT_EQ(assign({0, 0, 0}, "size=8"), (Groups{0, 0, 0}));
}

TEST(Groups, MembersAndNames) {
  const Groups groups = {0, 1, 0, 1, 2};
  EXPECT_EQ(members_of(groups, 1), (Groups{1, 3}));
  EXPECT_EQ(group_name(groups, 1), "group 1 (workers 1, 3)");
  EXPECT_EQ(group_name(groups, 2), "group 2 (worker 4)");
}

TEST(Groups, OtherRulesAreRefused) {
  EXPECT_FALSE(parse_group_rule("none").local);
  for (const char* bad : {"", "nodes", "size=", "size=0", "size=-1", "size=2x", "size=99999999999", "2"})
    EXPECT_THROW((void)parse_group_rule(bad), UsageError) << bad;
}

}  // namespace
}  // namespace fluentps
