// SPDX-License-Identifier: Apache-2.0
// What-if: times side by side per size, the ratio to the first, and which terms changed at the size that differs most.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "report/csv_field.hpp"
#include "report/json_parts.hpp"
#include "report/report.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

const Row* row_of(const WorkloadPrediction& workload, const Row& like) {
  for (const auto& row : workload.rows) {
    if (row.size == like.size && row.label == like.label) return &row;
  }
  return nullptr;
}

/// Rows of one workload that every prediction has, with the largest change last to first.
struct Table {
  std::string workload;
  std::vector<Bytes> sizes;
  std::vector<std::vector<const Row*>> rows;  ///< [size][prediction]
};

std::vector<Table> tables_of(std::span<const Compared> all) {
  std::vector<Table> tables;
  std::size_t count = all.empty() ? 0 : all[0].prediction->workloads.size();
  for (const auto& one : all) count = std::min(count, one.prediction->workloads.size());
  for (std::size_t w = 0; w < count; ++w) {
    Table table;
    table.workload = all[0].prediction->workloads[w].name;
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

double ratio(const Row& row, const Row& reference) {
  return reference.time.ps == 0 ? 1.0 : static_cast<double>(row.time.ps) / static_cast<double>(reference.time.ps);
}

std::size_t most_changed(const Table& table, std::size_t other) {
  std::size_t best = 0;
  double largest = -1;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const double change = std::abs(std::log(std::max(1e-9, ratio(*table.rows[i][other], *table.rows[i][0]))));
    if (change > largest * (1 + 1e-9)) {
      largest = change;
      best = i;
    }
  }
  return best;
}

struct Change {
  std::string term;
  Duration before, after;
};

/// Terms by name, largest difference first; equal ones left out.
std::vector<Change> changed_terms(const Row& before, const Row& after) {
  std::map<std::string, Change> by_name;
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
  std::vector<Change> changes;
  for (const auto& [name, change] : by_name) {
    if (change.before != change.after) changes.push_back(change);
  }
  std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return std::abs((a.after - a.before).ps) > std::abs((b.after - b.before).ps);
  });
  return changes;
}

std::string setting_differences(std::span<const Compared> all) {
  std::string out;
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
        out += fmt::format("#   {}: {} -> {}: {}\n", all[k].name, name, values.first.empty() ? "-" : values.first,
                           values.second.empty() ? "-" : values.second);
    }
  }
  return out;
}

}  // namespace

std::string compare_text(std::span<const Compared> all) {
  std::string out;
  for (std::size_t k = 0; k < all.size(); ++k)
    out += fmt::format("# {}: {}\n", static_cast<char>('A' + static_cast<char>(k % 26)), all[k].name);
  for (const auto& table : tables_of(all)) {
    out += fmt::format("# {}: time per operation (us), ratio to A\n", table.workload);
    out += fmt::format("#{:>11}", "size");
    for (std::size_t k = 0; k < all.size(); ++k)
      out += fmt::format("{:>14}", fmt::format("{} (us)", static_cast<char>('A' + static_cast<char>(k % 26))));
    for (std::size_t k = 1; k < all.size(); ++k)
      out += fmt::format("{:>8}", fmt::format("{}/A", static_cast<char>('A' + static_cast<char>(k % 26))));
    out += "\n";
    for (std::size_t i = 0; i < table.sizes.size(); ++i) {
      const auto& label = table.rows[i][0]->label;
      out += fmt::format("{:>12}", label.empty() ? std::to_string(table.sizes[i].value) : label);
      for (const auto* row : table.rows[i]) out += fmt::format("{:>14.2f}", row->time.us());
      for (std::size_t k = 1; k < all.size(); ++k)
        out += fmt::format("{:>8.3f}", ratio(*table.rows[i][k], *table.rows[i][0]));
      out += "\n";
    }
    for (std::size_t k = 1; k < all.size() && !table.rows.empty(); ++k) {
      const auto at = most_changed(table, k);
      const auto& before = *table.rows[at][0];
      const auto& after = *table.rows[at][k];
      const auto changes = changed_terms(before, after);
      if (changes.empty()) {
        out += fmt::format("# {} equals A in every term\n", static_cast<char>('A' + static_cast<char>(k % 26)));
        continue;
      }
      out += fmt::format("# terms that changed most from A to {} at {} ({} -> {}, bottleneck {} -> {}):\n",
                         static_cast<char>('A' + static_cast<char>(k % 26)), row_name(before), to_string(before.time),
                         to_string(after.time), before.bottleneck, after.bottleneck);
      // A thousandth of the time is below what the table shows.
      const auto shown = std::max(before.time, after.time).ps / 1000;
      for (std::size_t c = 0; c < changes.size() && c < 8; ++c) {
        if (c > 0 && std::abs((changes[c].after - changes[c].before).ps) < shown) break;
        out += fmt::format("#   {:>12.3f} -> {:>12.3f} us  {}\n", changes[c].before.us(), changes[c].after.us(),
                           changes[c].term);
      }
    }
  }
  if (const auto settings = setting_differences(all); !settings.empty()) out += "# settings that differ:\n" + settings;
  return out;
}

std::string compare_json(std::span<const Compared> all) {
  using Json = nlohmann::ordered_json;
  Json out{{"schema", "fabricast/compare/1"}};
  out["scenarios"] = Json::array();
  for (const auto& one : all) {
    auto item = provenance_json(*one.provenance);
    item["name"] = one.name;
    out["scenarios"].push_back(std::move(item));
  }
  out["workloads"] = Json::array();
  for (const auto& table : tables_of(all)) {
    Json workload{{"name", table.workload}, {"rows", Json::array()}};
    for (std::size_t i = 0; i < table.sizes.size(); ++i) {
      Json line{{"size_bytes", table.sizes[i].value},
                {"time_ps", Json::array()},
                {"ratio", Json::array()},
                {"changed_terms", Json::array()}};
      for (std::size_t k = 0; k < all.size(); ++k) {
        line["time_ps"].push_back(table.rows[i][k]->time.ps);
        line["ratio"].push_back(ratio(*table.rows[i][k], *table.rows[i][0]));
        Json changed = Json::array();
        for (const auto& change : changed_terms(*table.rows[i][0], *table.rows[i][k]))
          changed.push_back({{"term", change.term}, {"before_ps", change.before.ps}, {"after_ps", change.after.ps}});
        line["changed_terms"].push_back(std::move(changed));
      }
      workload["rows"].push_back(std::move(line));
    }
    out["workloads"].push_back(std::move(workload));
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string compare_csv(std::span<const Compared> all) {
  std::string out = "workload,size_bytes,scenario,time_ps,ratio,bottleneck\r\n";
  for (const auto& table : tables_of(all)) {
    for (std::size_t i = 0; i < table.sizes.size(); ++i) {
      for (std::size_t k = 0; k < all.size(); ++k) {
        out += fmt::format("{},{},{},{},{:.6g},{}\r\n", csv_field(table.workload), table.sizes[i].value,
                           csv_field(all[k].name), table.rows[i][k]->time.ps,
                           ratio(*table.rows[i][k], *table.rows[i][0]), csv_field(table.rows[i][k]->bottleneck));
      }
    }
  }
  return out;
}

}  // namespace fabricast::report
