// SPDX-License-Identifier: Apache-2.0
// Sweeps for other programs: JSON, lines of JSON, CSV.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/csv_field.hpp"
#include "report/inputs.hpp"
#include "report/json_parts.hpp"
#include "report/sweep.hpp"

namespace fabricast::report {

namespace {

Json standing_json(const Standing& standing) {
  Json out{{"meets_all", standing.meets_all},
           {"is_on_front", standing.is_on_front},
           {"rank", standing.rank > 0 ? Json(standing.rank) : Json()},
           {"probability", standing.probability},
           {"dominated_by", standing.dominated_by ? Json(*standing.dominated_by) : Json()},
           {"equals", standing.equals ? Json(*standing.equals) : Json()},
           {"misses", standing.misses}};
  return out;
}

Json ids(const SweepReport& sweep, const std::vector<std::size_t>& places) {
  Json out = Json::array();
  for (const auto place : places) out.push_back(sweep.designs[place].index);
  return out;
}

std::string number(double value) { return fmt::format("{:.17g}", value); }

}  // namespace

std::string sweep_json(const SweepReport& sweep) {
  Json out{{"schema", "fabricast/sweep/1"},
           {"tool", {{"name", "fabricast"}, {"version", sweep.version}}},
           {"plan", Json::parse(header_of(sweep.plan, sweep.version))},
           {"num_planned", sweep.num_planned},
           {"is_interrupted", sweep.is_interrupted},
           {"shard", sweep.shard.empty() ? Json() : Json(sweep.shard)}};
  out["inputs"] = inputs_json(inputs_of(sweep));
  out["front"] = ids(sweep, sweep.front);
  out["top"] = Json::array();
  for (const auto& one : sweep.top)
    out["top"].push_back({{"id", sweep.designs[one.index].index}, {"reasons", one.reasons}});
  out["refused"] = Json::array();
  for (const auto& one : refusals_of(sweep))
    out["refused"].push_back({{"status", to_string(one.status)},
                              {"count", one.count},
                              {"kind", without_numbers(one.example)},
                              {"example", one.example},
                              {"first_id", one.first}});
  out["designs"] = Json::array();
  for (std::size_t i = 0; i < sweep.designs.size(); ++i) {
    auto design = Json::parse(record_of(sweep.designs[i]));
    design["standing"] = standing_json(sweep.standings[i]);
    out["designs"].push_back(std::move(design));
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string sweep_lines(const SweepReport& sweep) {
  std::string out;
  for (const auto& design : sweep.designs) out += record_of(design) + "\n";
  return out;
}

std::string sweep_csv(const SweepReport& sweep) {
  const auto columns = columns_of(sweep);
  std::string out = "id,design";
  for (const auto& axis : sweep.plan.axes) out += "," + csv_field(axis.name);
  out += ",status,reason,meets_all,is_on_front,rank,probability";
  for (const auto& metric : columns) {
    for (const char* end : {"", " low", " high"}) out += "," + csv_field(metric.text + end);
  }
  out += ",bottleneck\n";
  for (std::size_t i = 0; i < sweep.designs.size(); ++i) {
    const auto& design = sweep.designs[i];
    const auto& standing = sweep.standings[i];
    out += fmt::format("{},{}", design.index, csv_field(design.name));
    for (const auto& axis : sweep.plan.axes) {
      std::string label;
      for (const auto& value : design.values) label = value.first == axis.name ? value.second : label;
      out += "," + csv_field(label);
    }
    const auto reason = !design.reasons.empty()    ? design.reasons.front()
                        : !standing.misses.empty() ? standing.misses.front()
                                                   : std::string();
    out += fmt::format(",{},{},{},{},{},{}", to_string(design.status), csv_field(reason), standing.meets_all ? 1 : 0,
                       standing.is_on_front ? 1 : 0, standing.rank > 0 ? std::to_string(standing.rank) : "",
                       number(standing.probability));
    for (const auto& metric : columns) {
      const auto* found = design.find(metric.text);
      if (found == nullptr)
        out += ",,,";
      else
        out += fmt::format(",{},{},{}", number(found->value), number(found->low), number(found->high));
    }
    out += "," + csv_field(design.bottleneck) + "\n";
  }
  return out;
}

}  // namespace fabricast::report
