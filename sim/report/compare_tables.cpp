// SPDX-License-Identifier: Apache-2.0
#include "report/compare_tables.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "report/tables.hpp"

namespace fabricast::report {

namespace {

const Row* row_of(const WorkloadPrediction& workload, const Row& like) {
  for (const auto& row : workload.rows) {
    if (row.size == like.size && row.label == like.label && is_finished(row)) return &row;
  }
  return nullptr;
}

}  // namespace

std::vector<ComparedTable> compared_tables(std::span<const Compared> all) {
  std::vector<ComparedTable> tables;
  std::size_t count = all.empty() ? 0 : all[0].prediction->workloads.size();
  for (const auto& one : all) count = std::min(count, one.prediction->workloads.size());
  for (std::size_t w = 0; w < count; ++w) {
    ComparedTable table;
    table.workload = all[0].prediction->workloads[w].name;
    for (const auto& one : all) table.predictions.push_back(&one.prediction->workloads[w]);
    for (const auto& row : all[0].prediction->workloads[w].rows) {
      std::vector<const Row*> line;
      for (const auto& one : all) line.push_back(row_of(one.prediction->workloads[w], row));
      if (std::find(line.begin(), line.end(), nullptr) != line.end()) continue;
      table.sizes.push_back(row.size);
      table.rows.push_back(std::move(line));
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

double time_ratio(const Row& row, const Row& reference) {
  return reference.time.ps == 0 ? 1.0 : static_cast<double>(row.time.ps) / static_cast<double>(reference.time.ps);
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

std::vector<SettingChange> changed_settings(std::span<const Compared> all) {
  std::vector<SettingChange> changes;
  for (std::size_t k = 1; k < all.size(); ++k) {
    std::map<std::string, std::pair<std::string, std::string>> used;
    const auto collect = [&](const Prediction& prediction, bool is_first) {
      for (const auto& workload : prediction.workloads) {
        for (const auto& one : workload.settings)
          (is_first ? used[one.setting].first : used[one.setting].second) =
              one.used + (one.reason.empty() ? "" : " (" + one.reason + ")");
      }
    };
    collect(*all[0].prediction, true);
    collect(*all[k].prediction, false);
    if (all[0].prediction->topology != all[k].prediction->topology)
      used["topology"] = {all[0].prediction->topology, all[k].prediction->topology};
    for (const auto& [name, values] : used) {
      if (values.first != values.second)
        changes.push_back({all[k].name, name, values.first.empty() ? "-" : values.first,
                           values.second.empty() ? "-" : values.second});
    }
  }
  return changes;
}

char letter(std::size_t prediction) { return static_cast<char>('A' + static_cast<char>(prediction % 26)); }

}  // namespace fabricast::report
