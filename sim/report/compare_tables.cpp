// SPDX-License-Identifier: Apache-2.0
#include "report/compare_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/tables.hpp"

namespace fabricast::report {

namespace {

using Workloads = std::vector<WorkloadPrediction>;

const WorkloadPrediction* named(const Workloads& all, const std::string& name) {
  const auto it = std::ranges::find(all, name, &WorkloadPrediction::name);
  return it == all.end() ? nullptr : &*it;
}

/// The workload of `all` that stands for workload `w` of `first`; nullptr without one.
const WorkloadPrediction* counterpart(const Workloads& first, std::size_t w, const Workloads& all) {
  const auto* at_place = w < all.size() ? &all[w] : nullptr;
  if (at_place != nullptr && at_place->name == first[w].name) return at_place;
  if (const auto* found = named(all, first[w].name)) return found;
  return at_place != nullptr && named(first, at_place->name) == nullptr ? at_place : nullptr;
}

/// Labels say more than sizes: what a step exchanges depends on how it is split.
const Row* row_of(const WorkloadPrediction& workload, const Row& like) {
  for (const auto& row : workload.rows) {
    const bool is_same = like.label.empty() ? row.label.empty() && row.size == like.size : row.label == like.label;
    if (is_same && is_finished(row)) return &row;
  }
  return nullptr;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names)
    if (&name == names.data() || name != names.front()) out += (out.empty() ? "" : " / ") + name;
  return out;
}

void add_line(ComparedTable& table, std::vector<const Row*> line) {
  std::vector<std::string> labels;
  for (const auto* row : line) labels.push_back(row->label);
  table.sizes.push_back(line.front()->size);
  table.names.push_back(joined(labels));
  table.rows.push_back(std::move(line));
}

ComparedTable table_of(std::vector<const WorkloadPrediction*> workloads) {
  ComparedTable table;
  std::vector<std::string> names;
  for (const auto* one : workloads) names.push_back(one->name);
  table.workload = joined(names);
  const auto& first = *workloads.front();
  for (const auto& row : first.rows) {
    std::vector<const Row*> line;
    for (const auto* one : workloads) line.push_back(row_of(*one, row));
    if (std::ranges::find(line, nullptr) == line.end()) add_line(table, std::move(line));
  }
  // Steps on other numbers of GPUs: on all that each takes.
  const bool are_steps = std::ranges::all_of(
      workloads, [](const auto* one) { return one->benchmark == Benchmark::training && !one->rows.empty(); });
  if (table.rows.empty() && are_steps) {
    std::vector<const Row*> line;
    for (const auto* one : workloads) line.push_back(&one->rows.back());
    if (std::ranges::all_of(line, [](const Row* row) { return is_finished(*row); })) add_line(table, std::move(line));
  }
  for (const auto* one : workloads) table.num_left_out += static_cast<int>(one->rows.size() - table.rows.size());
  table.predictions = std::move(workloads);
  return table;
}

void add_bands(std::span<const Compared> all, ComparedTable& table) {
  for (const auto& line : table.rows) {
    auto& bands = table.bands.emplace_back();
    for (std::size_t k = 0; k < line.size(); ++k)
      bands.push_back(ratio_band({*line[k], *all[k].parameters}, {*line[0], *all[0].parameters}));
  }
}

bool is_undecided(const ComparedTable& table, std::size_t row, std::size_t other) {
  const auto& band = table.bands[row][other];
  return table.rows[row][0]->time != table.rows[row][other]->time && band.low <= 1 && 1 <= band.high;
}

}  // namespace

Comparison comparison(std::span<const Compared> all) {
  Comparison out;
  if (all.empty()) return out;
  const auto& first = all[0].prediction->workloads;
  std::vector<std::set<const WorkloadPrediction*>> taken(all.size());
  for (std::size_t w = 0; w < first.size(); ++w) {
    std::vector<const WorkloadPrediction*> line;
    for (const auto& one : all) line.push_back(counterpart(first, w, one.prediction->workloads));
    if (std::ranges::find(line, nullptr) != line.end()) continue;
    for (std::size_t k = 0; k < all.size(); ++k) taken[k].insert(line[k]);
    out.tables.push_back(table_of(std::move(line)));
    add_bands(all, out.tables.back());
  }
  for (std::size_t k = 0; k < all.size(); ++k)
    for (const auto& one : all[k].prediction->workloads)
      if (!taken[k].contains(&one)) out.left_out.push_back(one.name + " of " + letter(k));
  return out;
}

std::string row_name(const ComparedTable& table, std::size_t row) {
  return table.names[row].empty() ? to_string(table.sizes[row]) : table.names[row];
}

double time_ratio(const Row& row, const Row& reference) {
  return reference.time.ps == 0 ? 1.0 : static_cast<double>(row.time.ps) / static_cast<double>(reference.time.ps);
}

std::string to_string(const RatioBand& band) { return fmt::format("{:.3f}..{:.3f}", band.low, band.high); }

double throughput(const Row& row) {
  const auto it = std::ranges::find(row.figures, "throughput_per_s", &Figure::key);
  return it == row.figures.end() ? 0 : it->value;
}

bool has_throughput(const ComparedTable& table) { return throughput(*table.rows.front().front()) > 0; }

std::string undecided(const ComparedTable& table, std::size_t other) {
  std::string out;
  const auto is_open = [&](std::size_t i) { return i < table.rows.size() && is_undecided(table, i, other); };
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (!is_open(i)) continue;
    const auto first = i;
    while (is_open(i + 1)) ++i;
    out += (out.empty() ? "" : ", ") + range_text(row_name(table, first), row_name(table, i));
  }
  return out;
}

std::size_t most_changed(const ComparedTable& table, std::size_t other) {
  std::size_t best = 0;
  double largest = -1;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const double change = std::abs(std::log(std::max(1e-9, time_ratio(*table.rows[i][other], *table.rows[i][0]))));
    if (change > largest * (1 + 1e-9)) {
      largest = change;
      best = i;
    }
  }
  return best;
}

std::vector<TermChange> changed_terms(const Row& before, const Row& after) {
  std::map<std::string, TermChange> by_name;
  for (const auto& term : before.terms) {
    auto& change = by_name[term.name];
    change.term = term.name;
    change.before += term.time;
  }
  for (const auto& term : after.terms) {
    auto& change = by_name[term.name];
    change.term = term.name;
    change.after += term.time;
  }
  std::vector<TermChange> changes;
  for (const auto& [name, change] : by_name) {
    if (change.before != change.after) changes.push_back(change);
  }
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return std::abs((a.after - a.before).ps) > std::abs((b.after - b.before).ps);
  });
  return changes;
}

std::vector<TermChange> main_changes(const Row& before, const Row& after) {
  constexpr std::size_t k_most = 8;
  // A thousandth of the time is below what the tables show.
  const auto shown = std::max(before.time, after.time).ps / 1000;
  auto changes = changed_terms(before, after);
  std::size_t count = std::min(changes.size(), k_most);
  while (count > 1 && std::abs((changes[count - 1].after - changes[count - 1].before).ps) < shown) --count;
  changes.resize(count);
  return changes;
}

std::vector<SettingChange> changed_settings(std::span<const Compared> all, const Comparison& compared) {
  std::vector<SettingChange> changes;
  const auto shown = [](const std::string& value) { return value.empty() ? "-" : value; };
  for (std::size_t k = 1; k < all.size(); ++k) {
    std::map<std::string, std::pair<std::string, std::string>> used;
    for (const auto& table : compared.tables) {
      const auto prefix = compared.tables.size() > 1 ? table.workload + ": " : std::string();
      const auto said = [](const GivenUsed& one) {
        return one.used + (one.reason.empty() ? "" : " (" + one.reason + ")");
      };
      for (const auto& one : table.predictions[0]->settings) used[prefix + one.setting].first = said(one);
      for (const auto& one : table.predictions[k]->settings) used[prefix + one.setting].second = said(one);
    }
    used["topology"] = {all[0].prediction->topology, all[k].prediction->topology};
    for (const auto& [name, values] : used)
      if (values.first != values.second)
        changes.push_back({all[k].name, name, shown(values.first), shown(values.second)});
  }
  return changes;
}

std::vector<AssumptionChange> changed_assumptions(std::span<const Compared> all, const Comparison& compared) {
  const auto assumed = [&](std::size_t k) {
    std::set<std::string> out;
    for (const auto& table : compared.tables)
      out.insert(table.predictions[k]->assumptions.begin(), table.predictions[k]->assumptions.end());
    return out;
  };
  std::vector<AssumptionChange> changes;
  for (std::size_t k = 1; k < all.size(); ++k) {
    const auto before = assumed(0);
    const auto after = assumed(k);
    for (const auto& one : before)
      if (!after.contains(one)) changes.push_back({k, one, false});
    for (const auto& one : after)
      if (!before.contains(one)) changes.push_back({k, one, true});
  }
  return changes;
}

std::string AssumptionChange::text() const {
  return fmt::format("{}, not {}: {}", letter(is_new ? prediction : 0), letter(is_new ? 0 : prediction), assumption);
}

std::string way_of(const Row& row) {
  return row.algorithm + (row.algorithm.empty() || row.protocol.empty() ? "" : " ") + row.protocol;
}

char letter(std::size_t prediction) { return static_cast<char>('A' + static_cast<char>(prediction % 26)); }

}  // namespace fabricast::report
