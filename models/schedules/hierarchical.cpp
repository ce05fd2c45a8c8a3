// SPDX-License-Identifier: Apache-2.0
// MPICH's and Cray MPICH's SMP forms, Open MPI's HAN.
#include <algorithm>
#include <map>

#include "schedules/algorithms.hpp"

namespace fabricast::models::schedules {

namespace {

/// Ranks of each host; the first of each speaks for it, the root for its own.
std::vector<std::vector<int>> groups_of(const std::vector<int>& hosts, int root) {
  std::map<int, std::vector<int>> by_host;
  for (std::size_t r = 0; r < hosts.size(); ++r) by_host[hosts[r]].push_back(static_cast<int>(r));
  std::vector<std::vector<int>> groups;
  for (auto& [host, ranks] : by_host) {
    if (const auto speaker = std::ranges::find(ranks, root); speaker != ranks.end()) std::swap(*speaker, ranks.front());
    groups.push_back(std::move(ranks));
  }
  return groups;
}

/// A stage of `members`, whose ranks it counts from 0.
Rounds among(const std::vector<int>& members, const std::function<Rounds(int n)>& stage) {
  auto rounds = stage(static_cast<int>(members.size()));
  for (auto& round : rounds) {
    for (auto& step : round.steps) {
      step.from = members[static_cast<std::size_t>(step.from)];
      step.to = members[static_cast<std::size_t>(step.to)];
    }
  }
  return rounds;
}

/// Both go on at the same time; a round that repeats longer goes on beside what follows the other.
Rounds beside(Rounds one, Rounds other) {
  Rounds out;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < one.size() && j < other.size()) {
    const auto repeat = std::min(one[i].repeat, other[j].repeat);
    auto both = one[i];
    both.repeat = repeat;
    both.steps.insert(both.steps.end(), other[j].steps.begin(), other[j].steps.end());
    both.reduced_bytes = std::max(both.reduced_bytes, other[j].reduced_bytes);
    if (other[j].order != both.order) both.order = RoundOrder::barrier;
    out.push_back(std::move(both));
    one[i].repeat -= repeat;
    other[j].repeat -= repeat;
    i += one[i].repeat == 0 ? 1 : 0;
    j += other[j].repeat == 0 ? 1 : 0;
  }
  out.insert(out.end(), one.begin() + static_cast<std::ptrdiff_t>(i), one.end());
  out.insert(out.end(), other.begin() + static_cast<std::ptrdiff_t>(j), other.end());
  return out;
}

Rounds in_every(const std::vector<std::vector<int>>& groups, const std::function<Rounds(int n)>& stage) {
  Rounds rounds;
  for (const auto& group : groups) rounds = beside(std::move(rounds), among(group, stage));
  return rounds;
}

}  // namespace

Rounds hierarchical(const std::vector<int>& hosts, int root, const Stages& stages, std::int64_t parts) {
  const auto groups = groups_of(hosts, root);
  std::vector<int> speakers;
  for (const auto& group : groups) speakers.push_back(group.front());
  if (const auto first = std::ranges::find(speakers, root); first != speakers.end())
    std::swap(*first, speakers.front());
  const auto gathered = stages.gather ? in_every(groups, stages.gather) : Rounds{};
  const auto spread = stages.spread ? in_every(groups, stages.spread) : Rounds{};
  Rounds rounds = gathered;
  append(rounds, among(speakers, stages.exchange));
  append(rounds, spread);
  if (parts == 1) return rounds;
  auto inside = gathered;
  append(inside, spread);
  const auto& later = stages.later_exchange ? stages.later_exchange : stages.exchange;
  auto steady = beside(std::move(inside), among(speakers, later));
  for (auto& round : steady) {
    round.repeat *= parts - 1;
    if (round.order == RoundOrder::ring) round.order = RoundOrder::barrier;
  }
  append(rounds, std::move(steady));
  return rounds;
}

}  // namespace fabricast::models::schedules
