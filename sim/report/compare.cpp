// SPDX-License-Identifier: Apache-2.0
// What-if: times side by side per size, the ratio to the first, and which terms changed at the size that differs most.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>

#include "report/compare_tables.hpp"
#include "report/csv_field.hpp"
#include "report/json_parts.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

/// Six digits: logarithms differ in the last ones from one C library to the next.
double six_digits(double value) { return std::stod(fmt::format("{:.6g}", value)); }

std::string limit(const Row& row) { return row.bottleneck.empty() ? "nothing" : row.bottleneck; }

std::string row_text(const ComparedTable& table, std::size_t i) {
  const auto& line = table.rows[i];
  auto out = fmt::format("{:>12}", table.names[i].empty() ? std::to_string(table.sizes[i].value) : table.names[i]);
  for (const auto* row : line) out += fmt::format("{:>14.2f}", row->time.us());
  for (std::size_t k = 1; k < line.size(); ++k)
    out += fmt::format("{:>8.3f}{:>15}", time_ratio(*line[k], *line[0]), to_string(table.bands[i][k]));
  if (has_throughput(table))
    for (const auto* row : line) out += fmt::format("{:>14.2f}", throughput(*row));
  return out + "\n";
}

std::string changes_text(const ComparedTable& table, std::size_t k) {
  std::string out;
  if (const auto sizes = undecided(table, k); !sizes.empty())
    out += fmt::format("# which of A and {} is faster stays open at {}: the 80 % band of their ratio holds 1\n",
                       letter(k), sizes);
  const auto at = most_changed(table, k);
  const auto& before = *table.rows[at][0];
  const auto& after = *table.rows[at][k];
  if (changed_terms(before, after).empty()) return out + fmt::format("# {} equals A in every term\n", letter(k));
  const auto ways = way_of(before) == way_of(after) ? "" : fmt::format("{} -> {}, ", way_of(before), way_of(after));
  out += fmt::format("# terms that changed most from A to {} at {} ({} -> {}, {}bottleneck {} -> {}):\n", letter(k),
                     row_name(table, at), to_string(before.time), to_string(after.time), ways, limit(before),
                     limit(after));
  for (const auto& change : main_changes(before, after))
    out += fmt::format("#   {:>12.3f} -> {:>12.3f} us  {}\n", change.before.us(), change.after.us(), change.term);
  return out;
}

std::string table_text(const ComparedTable& table) {
  if (table.rows.empty()) return fmt::format("# {}: no size that all have\n", table.workload);
  auto out = fmt::format("# {}: time per operation (us), ratio to A and its 80 % band{}\n", table.workload,
                         has_throughput(table) ? ", throughput (/s)" : "");
  const auto count = table.predictions.size();
  out += fmt::format("#{:>11}", "size");
  for (std::size_t k = 0; k < count; ++k) out += fmt::format("{:>14}", fmt::format("{} (us)", letter(k)));
  for (std::size_t k = 1; k < count; ++k) out += fmt::format("{:>8}{:>15}", fmt::format("{}/A", letter(k)), "80 %");
  if (has_throughput(table))
    for (std::size_t k = 0; k < count; ++k) out += fmt::format("{:>14}", fmt::format("{} (/s)", letter(k)));
  out += "\n";
  for (std::size_t i = 0; i < table.sizes.size(); ++i) out += row_text(table, i);
  if (table.num_left_out > 0) out += fmt::format("# rows that not all have, left out: {}\n", table.num_left_out);
  for (std::size_t k = 1; k < count; ++k) out += changes_text(table, k);
  return out;
}

}  // namespace

std::string compare_text(std::span<const Compared> all) {
  std::string out;
  for (std::size_t k = 0; k < all.size(); ++k) out += fmt::format("# {}: {}\n", letter(k), all[k].name);
  const auto compared = comparison(all);
  for (const auto& table : compared.tables) out += table_text(table);
  if (!compared.left_out.empty())
    out += fmt::format("# workloads without a counterpart, left out: {}\n", fmt::join(compared.left_out, ", "));
  const auto settings = changed_settings(all, compared);
  if (!settings.empty()) out += "# settings that differ:\n";
  for (const auto& one : settings)
    out += fmt::format("#   {}: {}: {} -> {}\n", one.scenario, one.setting, one.before, one.after);
  const auto assumptions = changed_assumptions(all, compared);
  if (!assumptions.empty()) out += "# assumptions that differ:\n";
  for (const auto& one : assumptions) out += fmt::format("#   {}\n", one.text());
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
  const auto compared = comparison(all);
  for (const auto& table : compared.tables) {
    Json workload{{"name", table.workload},
                  {"num_ranks", Json::array()},
                  {"num_hosts", Json::array()},
                  {"num_left_out", table.num_left_out}};
    for (const auto* one : table.predictions) {
      workload["num_ranks"].push_back(one->num_ranks);
      workload["num_hosts"].push_back(one->num_hosts);
    }
    workload["rows"] = Json::array();
    for (std::size_t i = 0; i < table.sizes.size(); ++i) {
      Json line{
          {"size_bytes", table.sizes[i].value}, {"time_ps", Json::array()},         {"low_time_ps", Json::array()},
          {"high_time_ps", Json::array()},      {"ratio", Json::array()},           {"low_ratio", Json::array()},
          {"high_ratio", Json::array()},        {"is_extrapolated", Json::array()}, {"changed_terms", Json::array()}};
      if (!table.names[i].empty()) line["label"] = table.names[i];
      for (std::size_t k = 0; k < all.size(); ++k) {
        const auto& row = *table.rows[i][k];
        line["time_ps"].push_back(row.time.ps);
        line["low_time_ps"].push_back(row.low_time.ps);
        line["high_time_ps"].push_back(row.high_time.ps);
        if (has_throughput(table)) line["throughput_per_s"].push_back(throughput(row));
        line["is_extrapolated"].push_back(row.is_extrapolated);
        line["ratio"].push_back(time_ratio(row, *table.rows[i][0]));
        const auto& band = table.bands[i][k];
        line["low_ratio"].push_back(six_digits(band.low));
        line["high_ratio"].push_back(six_digits(band.high));
        Json changed = Json::array();
        for (const auto& change : changed_terms(*table.rows[i][0], row))
          changed.push_back({{"term", change.term}, {"before_ps", change.before.ps}, {"after_ps", change.after.ps}});
        line["changed_terms"].push_back(std::move(changed));
      }
      workload["rows"].push_back(std::move(line));
    }
    out["workloads"].push_back(std::move(workload));
  }
  out["left_out"] = compared.left_out;
  out["changed_settings"] = Json::array();
  for (const auto& one : changed_settings(all, compared))
    out["changed_settings"].push_back(
        {{"scenario", one.scenario}, {"setting", one.setting}, {"before", one.before}, {"after", one.after}});
  out["changed_assumptions"] = Json::array();
  for (const auto& one : changed_assumptions(all, compared))
    out["changed_assumptions"].push_back(
        {{"scenario", all[one.prediction].name}, {"assumption", one.assumption}, {"is_new", one.is_new}});
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string compare_csv(std::span<const Compared> all) {
  std::string out =
      "workload,size_bytes,scenario,time_ps,ratio,bottleneck,label,topology,num_ranks,num_hosts,fidelity,"
      "is_extrapolated,low_time_ps,high_time_ps,throughput_per_s,low_ratio,high_ratio\r\n";
  const auto compared = comparison(all);
  for (const auto& table : compared.tables) {
    for (std::size_t i = 0; i < table.sizes.size(); ++i) {
      for (std::size_t k = 0; k < all.size(); ++k) {
        const auto& row = *table.rows[i][k];
        const auto rate = throughput(row) > 0 ? fmt::format("{}", throughput(row)) : "";
        const auto& band = table.bands[i][k];
        out += fmt::format("{},{},{},{},{:.6g},{},{},{},{},{},{},{},{},{},{},{:.6g},{:.6g}\r\n",
                           csv_field(table.workload), row.size.value, csv_field(all[k].name), row.time.ps,
                           time_ratio(row, *table.rows[i][0]), csv_field(row.bottleneck), csv_field(row.label),
                           csv_field(all[k].prediction->topology), table.predictions[k]->num_ranks,
                           table.predictions[k]->num_hosts, csv_field(all[k].provenance->fidelity),
                           row.is_extrapolated ? 1 : 0, row.low_time.ps, row.high_time.ps, rate, band.low, band.high);
      }
    }
  }
  return out;
}

}  // namespace fabricast::report
