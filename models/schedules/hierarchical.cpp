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

/// Adds the rounds of `more` beside those of `all`: both go on at the same time.
void add_beside(Rounds& all, const Rounds& more) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (i >= all.size()) {
      all.push_back(more[i]);
      continue;
    }
    all[i].steps.insert(all[i].steps.end(), more[i].steps.begin(), more[i].steps.end());
    all[i].repeat = std::max(all[i].repeat, more[i].repeat);
    all[i].reduced_bytes = std::max(all[i].reduced_bytes, more[i].reduced_bytes);
    if (more[i].order != all[i].order) all[i].order = RoundOrder::barrier;
  }
}

Rounds in_every(const std::vector<std::vector<int>>& groups, const std::function<Rounds(int n)>& stage) {
  Rounds rounds;
  for (const auto& group : groups) add_beside(rounds, among(group, stage));
  return rounds;
}

}  // namespace

Rounds hierarchical(const std::vector<int>& hosts, int root, const Stages& stages, std::int64_t parts) {
  const auto groups = groups_of(hosts, root);
  std::vector<int> speakers;
  for (const auto& group : groups) speakers.push_back(group.front());
  if (const auto first = std::ranges::find(speakers, root); first != speakers.end())
    std::swap(*first, speakers.front());
  std::vector<Rounds> all;
  if (stages.gather) all.push_back(in_every(groups, stages.gather));
  if (stages.exchange) all.push_back(among(speakers, stages.exchange));
  if (stages.spread) all.push_back(in_every(groups, stages.spread));
  Rounds rounds;
  for (const auto& one : all) append(rounds, one);
  if (parts == 1) return rounds;
  Rounds steady;
  for (const auto& one : all) add_beside(steady, one);
  for (auto& round : steady) {
    round.repeat *= parts - 1;
    if (round.order == RoundOrder::ring) round.order = RoundOrder::barrier;
  }
  append(rounds, std::move(steady));
  return rounds;
}

}  // namespace fabricast::models::schedules
