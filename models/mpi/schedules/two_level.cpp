// SPDX-License-Identifier: Apache-2.0
// Hierarchical collectives: MPICH's and Cray MPICH's SMP forms, Open MPI's HAN.
#include <algorithm>
#include <map>

#include "mpi/schedules/families.hpp"

namespace fabricast::models::mpi {

namespace {

/// Ranks of each host; the first of each speaks for it, the root for its own.
std::vector<std::vector<int>> groups_of(const Collective& collective) {
  std::map<int, std::vector<int>> by_host;
  for (int r = 0; r < collective.num_ranks; ++r)
    by_host[collective.hosts.empty() ? 0 : collective.hosts[static_cast<std::size_t>(r)]].push_back(r);
  std::vector<std::vector<int>> groups;
  for (auto& [host, ranks] : by_host) {
    if (const auto root = std::find(ranks.begin(), ranks.end(), collective.root); root != ranks.end())
      std::swap(*root, ranks.front());
    groups.push_back(std::move(ranks));
  }
  return groups;
}

/// The rounds of one stage with ranks counted within `members`.
void rename(Rounds& rounds, const std::vector<int>& members) {
  for (auto& round : rounds) {
    for (auto& step : round.steps) {
      step.from = members[static_cast<std::size_t>(step.from)];
      step.to = members[static_cast<std::size_t>(step.to)];
    }
  }
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

Rounds stage(Collective one, const std::vector<int>& members) {
  one.num_ranks = static_cast<int>(members.size());
  one.hosts.clear();
  one.root = 0;
  auto rounds = make_schedule(one);
  rename(rounds, members);
  return rounds;
}

/// Gather inside hosts, exchange between them, spread inside: those that the collective has.
std::vector<Rounds> stages_of(const Collective& collective) {
  const auto groups = groups_of(collective);
  std::vector<int> speakers;
  for (const auto& group : groups) speakers.push_back(group.front());
  if (const auto root = std::find(speakers.begin(), speakers.end(), collective.root); root != speakers.end())
    std::swap(*root, speakers.front());
  const auto inside = [&](Benchmark benchmark) {
    Rounds rounds;
    for (const auto& group : groups) {
      auto one = collective;
      one.benchmark = benchmark;
      one.algorithm = collective.inside;
      add_beside(rounds, stage(one, group));
    }
    return rounds;
  };
  auto between = collective;
  between.algorithm = collective.between;
  std::vector<Rounds> stages;
  if (collective.benchmark != Benchmark::osu_bcast) stages.push_back(inside(Benchmark::osu_reduce));
  stages.push_back(stage(between, speakers));
  if (collective.benchmark != Benchmark::osu_reduce) stages.push_back(inside(Benchmark::osu_bcast));
  return stages;
}

}  // namespace

Rounds two_level(const Collective& whole) {
  auto collective = whole;
  std::int64_t parts = 1;
  if (whole.segment.value > 0 && whole.size > whole.segment) {
    parts = (whole.size.value + whole.segment.value - 1) / whole.segment.value;
    collective.size = Bytes{whole.size.value / parts};
  }
  collective.segment = {};
  const auto stages = stages_of(collective);
  Rounds rounds;
  for (const auto& one : stages) rounds.insert(rounds.end(), one.begin(), one.end());
  if (parts == 1) return rounds;
  // The first segment passes every stage; the others follow it with all stages at work.
  Rounds steady;
  for (const auto& one : stages) add_beside(steady, one);
  for (auto& round : steady) {
    round.repeat *= parts - 1;
    if (round.order == RoundOrder::ring) round.order = RoundOrder::barrier;
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace fabricast::models::mpi
