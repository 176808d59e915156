/// Local groups: workers of one node that push and pull as one. Which worker is in which, and who leads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/roles.hpp"

namespace fluentps {

/// `--local-group`.
struct GroupRule {
  bool local = false;      ///< none: every worker pushes and pulls by itself
  std::uint32_t size = 0;  ///< most members of a group; 0: all workers of the node
};
GroupRule parse_group_rule(std::string_view text);  ///< "none", "node", "size=K"; throws UsageError

/// The group of every worker, numbered by their first workers. No group spans nodes: the workers of a node, by index,
/// are cut into groups of `rule.size`, the last of which may be smaller.
std::vector<std::uint32_t> assign_groups(const std::vector<int>& node_of_worker, const GroupRule& rule);

/// The members of a group, by index; the first leads.
std::vector<std::uint32_t> members_of(const std::vector<std::uint32_t>& group_of_worker, std::uint32_t group);

/// "group 1 (workers 2, 3)"
std::string group_name(const std::vector<std::uint32_t>& group_of_worker, std::uint32_t group);

/// Of every worker the node it runs on.
std::vector<int> node_of_worker(const Roles& roles);

/// Collective over all.job: the servers and the leaders alone, as roles in which the leader of group g is worker g. On
/// the other members, who exchange nothing with servers, `job` is empty. `servers`, `workers` and `node` are empty on
/// all.
Roles keep_leaders(const Roles& all, const std::vector<std::uint32_t>& group_of_worker);

}  // namespace fluentps
