// SPDX-License-Identifier: Apache-2.0
#include "programs/plan.hpp"

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "mpi/buffers.hpp"

namespace fabricast::programs {

double at_size(const SizeTable& table, std::size_t bytes) {
  const auto after = table.upper_bound(bytes);
  if (table.empty()) return 0;
  if (after == table.begin()) return after->second;
  const auto before = std::prev(after);
  if (after == table.end()) return before->second;
  const auto share = static_cast<double>(bytes - before->first) / static_cast<double>(after->first - before->first);
  return before->second + share * (after->second - before->second);
}

double at_way(const std::map<std::int64_t, SizeTable>& tables, double way_s, std::size_t bytes) {
  const SizeTable* nearest = nullptr;
  double least = 0;
  for (const auto& [way_ps, table] : tables) {
    const double apart = std::abs(static_cast<double>(way_ps) * 1e-12 - way_s);
    if (nearest != nullptr && apart >= least) continue;
    nearest = &table;
    least = apart;
  }
  return nearest == nullptr ? 0 : at_size(*nearest, bytes);
}

namespace {

bool read_table(Settings& out, const std::string& key, std::istringstream& words) {
  const std::map<std::string, SizeTable*> common{
      {"gap", &out.gap},       {"held", &out.held}, {"held_posted", &out.held_posted},
      {"inside", &out.inside}, {"own", &out.own},   {"sums", &out.sums}};
  const std::map<std::string, std::map<std::int64_t, SizeTable>*> by_way{{"latency", &out.latency},
                                                                         {"blocking", &out.blocking},
                                                                         {"both", &out.both},
                                                                         {"least", &out.least},
                                                                         {"posted", &out.posted}};
  const auto shared = common.find(key);
  const auto own = by_way.find(key);
  if (shared == common.end() && own == by_way.end()) return false;
  std::int64_t way_ps = 0;
  if (own != by_way.end() && !(words >> way_ps)) return false;
  std::size_t from = 0;
  double seconds = 0;
  if (!(words >> from >> seconds)) return false;
  (own != by_way.end() ? (*own->second)[way_ps] : *shared->second)[from] = seconds;
  return true;
}

}  // namespace

Settings read_settings(const std::string& path, std::string& fault) {
  Settings out;
  std::ifstream in(path);
  if (!in) fault = "cannot read " + path;
  std::string line, profile, release;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    bool is_good = true;
    if (key == "entry") {
      is_good = words >> out.entry_s && out.entry_s > 0;
    } else if (key == "profile" || key == "release") {
      words >> (key == "profile" ? profile : release);
    } else if (key == "hosts") {
      for (std::string host; words >> host;) out.hosts.push_back(host);
    } else {
      is_good = read_table(out, key, words);
    }
    if (!is_good) fault = path + ": '" + line + "' is no setting";
  }
  out.mpi_library = models::mpi::library_of(profile, release);
  return out;
}

const Plan& Plans::of(const models::mpi::Collective& asked) {
  const Key key{asked.benchmark, asked.size.value, asked.root, asked.hosts};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const auto chosen = models::mpi::choose(settings_.mpi_library, asked);
  Plan plan{.ranks = std::vector<std::vector<RankRound>>(static_cast<std::size_t>(asked.num_ranks)),
            .copied_bytes = models::mpi::buffers_of(settings_.mpi_library, chosen, Statistic::mean).copied};
  const bool ends_together = !models::mpi::ends_apart(chosen);
  const auto holds = [&](const models::schedules::Rounds& rounds) {
    const bool is_posted = !rounds.empty() && rounds.front().is_posted;
    return at_size(is_posted ? settings_.held_posted : settings_.held, static_cast<std::size_t>(chosen.size.value)) >=
           1;
  };
  for (const auto& round : models::mpi::make_schedule(chosen, holds)) {
    std::map<int, RankRound> own;
    bool is_held = ends_together;
    std::set<int> senders, receivers;
    for (const auto& step : round.steps) {
      senders.insert(step.from);
      receivers.insert(step.to);
    }
    for (const auto& step : round.steps) {
      const auto bytes = static_cast<std::size_t>(range::whole(step.bytes));
      const bool is_alone = !receivers.contains(step.from) && !senders.contains(step.to);
      const auto mode = round.is_posted ? SendMode::posted : is_alone ? SendMode::one_way : SendMode::exchange;
      is_held = is_held || at_size(round.is_posted ? settings_.held_posted : settings_.held, bytes) >= 1;
      own[step.from].sends.push_back({step.to, bytes, mode});
      own[step.to].receives.push_back({step.from, bytes});
    }
    const bool is_pipeline = round.order == models::schedules::RoundOrder::pipeline;
    is_held = is_held && round.order == models::schedules::RoundOrder::barrier;
    for (int rank = 0; is_held && ends_together && rank < asked.num_ranks; ++rank) own.try_emplace(rank);
    std::optional<Held> held;
    if (is_held) held = Held{num_held_++, static_cast<int>(own.size())};
    for (auto& [rank, one] : own) {
      one.held = held;
      one.repeat = round.repeat;
      one.reduced_bytes = one.receives.empty() ? 0 : round.reduced_bytes;
      one.is_pipeline = is_pipeline;
      plan.ranks[static_cast<std::size_t>(rank)].push_back(std::move(one));
    }
  }
  return known_.emplace(key, std::move(plan)).first->second;
}

}  // namespace fabricast::programs
