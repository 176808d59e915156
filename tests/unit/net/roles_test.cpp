/// Who becomes a server: plain arithmetic on invented nodes.
#include "net/roles.hpp"

#include <gtest/gtest.h>

#include "fluentps/error.hpp"

namespace fluentps {
namespace {

constexpr auto S = Role::kServer;
constexpr auto W = Role::kWorker;

std::vector<Role> assign(const std::vector<int>& nodes, std::uint32_t servers, Placement placement) {
  return assign_roles(nodes, std::vector<std::optional<Role>>(nodes.size()), servers, placement);
}

std::string refusal(const std::vector<int>& nodes, const std::vector<std::optional<Role>>& forced,
                    std::uint32_t servers) {
  try {
    assign_roles(nodes, forced, servers, Placement::kSpread);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Roles, FirstAndLastRanks) {
  EXPECT_EQ(assign({0, 0, 0, 0}, 2, Placement::kFirst), (std::vector<Role>{S, S, W, W}));
  EXPECT_EQ(assign({0, 0, 0, 0}, 1, Placement::kLast), (std::vector<Role>{W, W, W, S}));
}

TEST(Roles, SpreadTakesOneOfEachNodeInTurnAndItsLastRankFirst) {
  // Nodes of ranks {0,1}, {2,3}, {4,5}: numbered by their first rank.
  const std::vector<int> nodes = {0, 0, 2, 2, 4, 4};
  EXPECT_EQ(assign(nodes, 2, Placement::kSpread), (std::vector<Role>{W, S, W, S, W, W}));
  EXPECT_EQ(assign(nodes, 3, Placement::kSpread), (std::vector<Role>{W, S, W, S, W, S}));
  EXPECT_EQ(assign(nodes, 4, Placement::kSpread), (std::vector<Role>{S, S, W, S, W, S}));
  // Ranks dealt out round robin over the nodes.
  EXPECT_EQ(assign({0, 1, 0, 1}, 2, Placement::kSpread), (std::vector<Role>{W, W, S, S}));
}

TEST(Roles, ImpossibleCountsAreRefusedWithTheNumbers) {
  EXPECT_NE(refusal({0}, {std::nullopt}, 1).find("at least 2"), std::string::npos);
  const std::vector<std::optional<Role>> none(3);
  EXPECT_NE(refusal({0, 0, 0}, none, 0).find("1 to 2"), std::string::npos);
  EXPECT_NE(refusal({0, 0, 0}, none, 3).find("3 servers asked for on 3"), std::string::npos);
}

TEST(Roles, TheEnvironmentWinsAndMustBeComplete) {
  EXPECT_EQ(assign_roles({0, 0, 0}, {W, S, S}, 1, Placement::kFirst), (std::vector<Role>{W, S, S}));
  EXPECT_NE(refusal({0, 0, 0}, {W, std::nullopt, S}, 1).find("rank 1"), std::string::npos);
  EXPECT_NE(refusal({0, 0}, {W, W}, 1).find("0 of 2"), std::string::npos);
}

TEST(Roles, PlacementNames) {
  for (const auto each : {Placement::kSpread, Placement::kFirst, Placement::kLast})
    EXPECT_EQ(parse_placement(to_string(each)), each);
  EXPECT_THROW(parse_placement("middle"), UsageError);
}

}  // namespace
}  // namespace fluentps
