// SPDX-License-Identifier: Apache-2.0
// What-if: times side by side per size, the ratio to the first, and which terms changed at the size that differs most.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/compare_tables.hpp"
#include "report/csv_field.hpp"
#include "report/json_parts.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

std::string compare_text(std::span<const Compared> all) {
  std::string out;
  for (std::size_t k = 0; k < all.size(); ++k) out += fmt::format("# {}: {}\n", letter(k), all[k].name);
  for (const auto& table : compared_tables(all)) {
    if (table.rows.empty()) {
      out += fmt::format("# {}: no size that all have\n", table.workload);
      continue;
    }
    out += fmt::format("# {}: time per operation (us), ratio to A\n", table.workload);
    out += fmt::format("#{:>11}", "size");
    for (std::size_t k = 0; k < all.size(); ++k) out += fmt::format("{:>14}", fmt::format("{} (us)", letter(k)));
    for (std::size_t k = 1; k < all.size(); ++k) out += fmt::format("{:>8}", fmt::format("{}/A", letter(k)));
    out += "\n";
    for (std::size_t i = 0; i < table.sizes.size(); ++i) {
      const auto& label = table.rows[i][0]->label;
      out += fmt::format("{:>12}", label.empty() ? std::to_string(table.sizes[i].value) : label);
      for (const auto* row : table.rows[i]) out += fmt::format("{:>14.2f}", row->time.us());
      for (std::size_t k = 1; k < all.size(); ++k)
        out += fmt::format("{:>8.3f}", time_ratio(*table.rows[i][k], *table.rows[i][0]));
      out += "\n";
    }
    for (std::size_t k = 1; k < all.size(); ++k) {
      const auto at = most_changed(table, k);
      const auto& before = *table.rows[at][0];
      const auto& after = *table.rows[at][k];
      if (changed_terms(before, after).empty()) {
        out += fmt::format("# {} equals A in every term\n", letter(k));
        continue;
      }
      out += fmt::format("# terms that changed most from A to {} at {} ({} -> {}, bottleneck {} -> {}):\n", letter(k),
                         row_name(before), to_string(before.time), to_string(after.time), before.bottleneck,
                         after.bottleneck);
      for (const auto& change : main_changes(before, after))
        out += fmt::format("#   {:>12.3f} -> {:>12.3f} us  {}\n", change.before.us(), change.after.us(), change.term);
    }
  }
  const auto settings = changed_settings(all);
  if (!settings.empty()) out += "# settings that differ:\n";
  for (const auto& one : settings)
    out += fmt::format("#   {}: {} -> {}: {}\n", one.scenario, one.setting, one.before, one.after);
  return out;
}

std::string compare_json(std::span<const Compared> all) {
  Json out{{"schema", "fabricast/compare/1"}};
  out["scenarios"] = Json::array();
  for (const auto& one : all) {
    auto item = provenance_json(*one.provenance);
    item["name"] = one.name;
    item["scenario"] = one.prediction->scenario;
    item["topology"] = one.prediction->topology;
    out["scenarios"].push_back(std::move(item));
  }
  out["workloads"] = Json::array();
  for (const auto& table : compared_tables(all)) {
    Json workload{{"name", table.workload}, {"num_ranks", Json::array()}, {"num_hosts", Json::array()}};
    for (const auto* one : table.predictions) {
      workload["num_ranks"].push_back(one->num_ranks);
      workload["num_hosts"].push_back(one->num_hosts);
    }
    workload["rows"] = Json::array();
    for (std::size_t i = 0; i < table.sizes.size(); ++i) {
      Json line{{"size_bytes", table.sizes[i].value},
                {"time_ps", Json::array()},
                {"ratio", Json::array()},
                {"is_extrapolated", Json::array()},
                {"changed_terms", Json::array()}};
      if (!table.rows[i][0]->label.empty()) line["label"] = table.rows[i][0]->label;
      for (std::size_t k = 0; k < all.size(); ++k) {
        line["time_ps"].push_back(table.rows[i][k]->time.ps);
        line["is_extrapolated"].push_back(table.rows[i][k]->is_extrapolated);
        line["ratio"].push_back(time_ratio(*table.rows[i][k], *table.rows[i][0]));
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
  std::string out =
      "workload,size_bytes,scenario,time_ps,ratio,bottleneck,label,topology,num_ranks,num_hosts,fidelity,"
      "is_extrapolated\r\n";
  for (const auto& table : compared_tables(all)) {
    for (std::size_t i = 0; i < table.sizes.size(); ++i) {
      for (std::size_t k = 0; k < all.size(); ++k) {
        const auto& row = *table.rows[i][k];
        out += fmt::format("{},{},{},{},{:.6g},{},{},{},{},{},{},{}\r\n", csv_field(table.workload), row.size.value,
                           csv_field(all[k].name), row.time.ps, time_ratio(row, *table.rows[i][0]),
                           csv_field(row.bottleneck), csv_field(row.label), csv_field(all[k].prediction->topology),
                           table.predictions[k]->num_ranks, table.predictions[k]->num_hosts,
                           csv_field(all[k].provenance->fidelity), row.is_extrapolated ? 1 : 0);
      }
    }
  }
  return out;
}

}  // namespace fabricast::report
