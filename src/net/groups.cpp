#include "net/groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "fluentps/error.hpp"

namespace fluentps {

GroupRule parse_group_rule(std::string_view text) {
  if (text == "none") return {};
  if (text == "node") return {.local = true};
  constexpr std::string_view kSize = "size=";
  GroupRule rule{.local = true};
  if (text.starts_with(kSize)) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + kSize.size(), end, rule.size);
    if (error == std::errc() && stop == end && rule.size > 0) return rule;
  }
  throw UsageError(
      fmt::format("unknown --local-group '{}'; use none, node or size=K with K of 1 or more workers", text));
}

std::vector<std::uint32_t> assign_groups(const std::vector<int>& node_of_worker, const GroupRule& rule) {
  std::map<int, std::uint32_t> seen;  // workers of a node so far
  std::map<std::pair<int, std::uint32_t>, std::uint32_t> group_of_part;
  std::vector<std::uint32_t> groups;
  for (const int node : node_of_worker) {
    const auto position = seen[node]++;
    const auto part = rule.size > 0 ? position / rule.size : 0;
    const auto next = static_cast<std::uint32_t>(group_of_part.size());
    groups.push_back(group_of_part.try_emplace({node, part}, next).first->second);
  }
  return groups;
}

std::vector<std::uint32_t> members_of(const std::vector<std::uint32_t>& group_of_worker, std::uint32_t group) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t w = 0; w < group_of_worker.size(); ++w)
    if (group_of_worker[w] == group) members.push_back(w);
  return members;
}

std::string group_name(const std::vector<std::uint32_t>& group_of_worker, std::uint32_t group) {
  const auto members = members_of(group_of_worker, group);
  return fmt::format("group {} (worker{} {})", group, members.size() > 1 ? "s" : "", fmt::join(members, ", "));
}

std::vector<int> node_of_worker(const Roles& roles) {
  std::vector<int> nodes;
  for (const int rank : roles.rank_of_worker) nodes.push_back(roles.node_of_rank[static_cast<std::size_t>(rank)]);
  return nodes;
}

Roles keep_leaders(const Roles& all, const std::vector<std::uint32_t>& group_of_worker) {
  std::vector<int> leaders;  // job ranks, by group
  for (std::uint32_t w = 0; w < group_of_worker.size(); ++w)
    if (group_of_worker[w] == leaders.size()) leaders.push_back(all.rank_of_worker[w]);
  std::vector<int> kept = all.rank_of_server;
  kept.insert(kept.end(), leaders.begin(), leaders.end());
  std::sort(kept.begin(), kept.end());
  const auto rank_among_kept = [&kept](int rank) {
    return static_cast<int>(std::lower_bound(kept.begin(), kept.end(), rank) - kept.begin());
  };

  Roles roles;
  roles.role = all.role;
  const bool is_server = all.role == Role::kServer;
  roles.index = is_server ? all.index : group_of_worker[all.index];
  for (const int rank : all.rank_of_server) roles.rank_of_server.push_back(rank_among_kept(rank));
  for (const int rank : leaders) roles.rank_of_worker.push_back(rank_among_kept(rank));
  for (const int rank : kept) {
    roles.hosts.push_back(all.hosts[static_cast<std::size_t>(rank)]);
    roles.node_of_rank.push_back(all.node_of_rank[static_cast<std::size_t>(rank)]);
  }
  const int rank = all.job.rank();
  roles.job = Comm::split(all.job.get(), std::binary_search(kept.begin(), kept.end(), rank) ? 0 : MPI_UNDEFINED, rank);
  return roles;
}

}  // namespace fluentps
