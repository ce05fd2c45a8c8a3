// SPDX-License-Identifier: Apache-2.0
// JSON results: base units, the unit in the key (docs/FORMATS.md).
#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "report/fabric_tables.hpp"
#include "report/inputs.hpp"
#include "report/json_parts.hpp"
#include "report/report.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

Json link_use_json(const LinkUseTable& table) {
  Json links = Json::array();
  for (const auto& one : table.links)
    links.push_back({{"from", one.from},
                     {"to", one.to},
                     {"kind", one.kind},
                     {"bytes_per_s", one.bytes_per_s},
                     {"utilization_share", one.share}});
  return {{"num_used_links", table.num_used}, {"links", std::move(links)}};
}

/// What a row that did not finish does not have.
constexpr const char* k_measures[] = {"time_ps",           "low_time_ps",       "high_time_ps",
                                      "algbw_bytes_per_s", "busbw_bytes_per_s", "messages_per_s"};

}  // namespace

Json row_json(const Row& row) {
  Json out{{"size_bytes", row.size.value},
           {"time_ps", row.time.ps},
           {"low_time_ps", row.low_time.ps},
           {"high_time_ps", row.high_time.ps},
           {"algbw_bytes_per_s", row.algbw.bytes_per_s},
           {"busbw_bytes_per_s", row.busbw.bytes_per_s},
           {"messages_per_s", row.messages_per_s},
           {"algorithm", row.algorithm},
           {"protocol", row.protocol},
           {"channels", row.channels},
           {"bottleneck", row.bottleneck},
           {"physical_bound_ps", row.physical_bound.ps},
           {"is_extrapolated", row.is_extrapolated},
           {"is_finished", is_finished(row)}};
  if (!is_finished(row)) {
    for (const auto* key : k_measures) out[key] = nullptr;
    out["stopped_at_ps"] = row.time.ps;
  }
  if (!row.label.empty()) out["label"] = row.label;
  for (const auto& figure : row.figures) out[figure.key] = figure.value;
  out["terms"] = Json::array();
  for (const auto& term : row.terms)
    out["terms"].push_back(
        {{"name", term.name}, {"time_ps", term.time.ps}, {"parameter", term.parameter}, {"source", term.source}});
  add_fabric_json(row, out);
  return out;
}

Json provenance_json(const Provenance& provenance) {
  Json out{{"tool", {{"name", "fabricast"}, {"version", provenance.version}}},
           {"fidelity", provenance.fidelity},
           {"seed", provenance.seed}};
  out["inputs"] = inputs_json(sums_of(provenance.inputs));
  out["parameter_files"] = provenance.parameter_files;
  out["settings"] = Json::array();
  for (const auto& setting : provenance.settings)
    out["settings"].push_back({{"path", setting.path}, {"value", setting.value}});
  return out;
}

Json workload_json(const WorkloadPrediction& workload) {
  Json out{{"name", workload.name},
           {"benchmark", to_string(workload.benchmark)},
           {"num_ranks", workload.num_ranks},
           {"num_hosts", workload.num_hosts},
           {"devices", workload.devices}};
  out["given_used"] = Json::array();
  for (const auto& one : workload.settings)
    out["given_used"].push_back(
        {{"setting", one.setting}, {"given", one.given}, {"used", one.used}, {"reason", one.reason}});
  out["assumptions"] = workload.assumptions;
  out["rows"] = Json::array();
  for (const auto& row : workload.rows) out["rows"].push_back(row_json(row));
  return out;
}

std::string json(const Document& document) {
  const auto& prediction = document.prediction;
  Json out{{"schema", "fabricast/result/1"}};
  out.update(provenance_json(document.provenance));
  out["scenario"] = prediction.scenario;
  out["topology"] = prediction.topology;
  out["is_interrupted"] = prediction.is_interrupted;
  if (prediction.workloads.size() == 1) {
    const auto only = workload_json(prediction.workloads[0]);
    for (const auto* key : {"benchmark", "num_ranks", "num_hosts", "assumptions", "rows"}) out[key] = only[key];
  }
  out["workloads"] = Json::array();
  for (const auto& workload : prediction.workloads) out["workloads"].push_back(workload_json(workload));
  if (document.link_use != nullptr) out["link_use"] = link_use_json(*document.link_use);
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

/// One track per stream of a step; returns the number of the next track.
int add_timeline(const Row& row, int process, int thread, Json& events) {
  std::map<std::string, int> tracks;
  for (const auto& span : row.timeline) {
    const auto [track, is_new] = tracks.try_emplace(span.stream, thread);
    if (is_new) {
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", process},
                        {"tid", thread++},
                        {"args", {{"name", row.label + ", " + span.stream}}}});
    }
    events.push_back({{"name", span.name},
                      {"cat", "step"},
                      {"ph", "X"},
                      {"ts", span.start.us()},
                      {"dur", span.time.us()},
                      {"pid", process},
                      {"tid", track->second}});
  }
  return thread;
}

}  // namespace

std::string trace(const Document& document) {
  Json events = Json::array();
  int process = 1;  // viewers take process and thread 0 for an idle processor
  for (const auto& workload : document.prediction.workloads) {
    events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"args", {{"name", workload.name}}}});
    int thread = 1;
    for (const auto& row : workload.rows) {
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", process},
                        {"tid", thread},
                        {"args", {{"name", to_string(row.size)}}}});
      if (!row.timeline.empty()) {
        events.erase(events.size() - 1);
        thread = add_timeline(row, process, thread, events);
        continue;
      }
      double at = 0;
      for (const auto& term : row.terms) {
        if (term.time.ps > 0) {
          events.push_back({{"name", term.name},
                            {"cat", "term"},
                            {"ph", "X"},
                            {"ts", at},
                            {"dur", term.time.us()},
                            {"pid", process},
                            {"tid", thread},
                            {"args", {{"parameter", term.parameter}, {"source", term.source}}}});
        }
        at += std::max(0.0, term.time.us());
      }
      ++thread;
    }
    ++process;
  }
  // What the fabric did stands once, with the first workload that ran in it.
  for (const auto& workload : document.prediction.workloads) {
    for (const auto& row : workload.rows) add_fabric_trace(row, process++, events);
  }
  return Json{{"traceEvents", events}, {"displayTimeUnit", "ns"}}.dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace fabricast::report
