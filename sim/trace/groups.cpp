// SPDX-License-Identifier: Apache-2.0
// Communicator groups beside Chakra traces, as ASTRA-sim takes them: {"0": [0, 1], "tp1": [2, 3]}, the name that
// pg_name says to the ranks that take part. Traces name their groups themselves; the file says who is missing.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "trace/reading.hpp"

namespace fabricast {

namespace {

using trace::fault;
using Groups = std::map<std::string, std::set<int>>;

constexpr std::size_t k_most_group_bytes = std::size_t{64} << 20;
constexpr std::size_t k_most_group_levels = 2;  ///< an object of lists

Result<Groups> read_groups(const TraceFile& file, std::size_t num_ranks) {
  const SourceLocation here{file.name, 0, 0};
  const auto* form = R"(one object: {"0": [0, 1], "1": [2, 3]}, the groups' names and their ranks)";
  if (file.text.size() > k_most_group_bytes) return fault(here, "more than 64 MiB of groups", form);
  const auto begin = std::min(file.text.size(), file.text.find_first_of("{["));
  if (trace::json_extent(file.text, begin, k_most_group_levels).is_deep)
    return fault(here, "groups within groups", form);
  const auto json = nlohmann::json::parse(file.text, nullptr, false);
  if (!json.is_object() || json.empty()) return fault(here, "no groups, cut off or no JSON", form);
  Groups out;
  for (const auto& [name, ranks] : json.items()) {
    auto& group = out[printable(name)];
    if (!ranks.is_array() || ranks.empty())
      return fault(here, fmt::format("group '{}' has no list of ranks", printable(name)), form);
    for (const auto& one : ranks) {
      const auto rank = one.is_number_integer() ? one.get<std::int64_t>() : std::int64_t{-1};
      if (rank < 0 || rank >= static_cast<std::int64_t>(num_ranks))
        return fault(here, fmt::format("group '{}' has rank {}", printable(name), printable(one.dump().substr(0, 40))),
                     fmt::format("ranks are 0 to {}: one per trace, or give --ranks", num_ranks - 1));
      if (!group.insert(static_cast<int>(rank)).second)
        return fault(here, fmt::format("group '{}' has rank {} twice", printable(name), rank), form);
    }
  }
  return out;
}

}  // namespace

Result<void> check_groups(const Trace& trace, const TraceFile& file) {
  auto groups = read_groups(file, trace.ranks.size());
  if (!groups) return tl::unexpected(groups.error());
  Groups used;
  std::map<std::string, const TraceOp*> first;
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    for (const auto& op : trace.ranks[rank]) {
      const auto known = op.kind == TraceOpKind::collective ? groups->find(op.group) : groups->end();
      if (known == groups->end()) continue;
      if (!known->second.contains(static_cast<int>(rank)))
        return fault(op.place, fmt::format("'{}' is of group '{}', which rank {} is not in", op.name, op.group, rank),
                     fmt::format("{} lists the ranks of every group", file.name));
      used[op.group].insert(static_cast<int>(rank));
      first.emplace(op.group, &op);
    }
  }
  for (const auto& [name, ranks] : used) {
    for (const int rank : (*groups)[name]) {
      if (ranks.contains(rank)) continue;
      return fault(first[name]->place,
                   fmt::format("rank {} of group '{}' never takes part in '{}'", rank, name, first[name]->name),
                   fmt::format("give the trace of rank {}, or take it out of the group in {}", rank, file.name));
    }
  }
  return {};
}

}  // namespace fabricast
