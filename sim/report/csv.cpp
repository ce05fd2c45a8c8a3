// SPDX-License-Identifier: Apache-2.0
// RFC 4180 tables; a decimal point in every locale.
#include <fmt/format.h>

#include <string_view>

#include "report/csv_field.hpp"
#include "report/report.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

std::string csv_field(const std::string& name) {
  // Spreadsheets calculate cells that begin so, quoted or not [OWASP, CSV injection].
  const bool is_formula = !name.empty() && std::string_view("=+-@\t\r").find(name[0]) != std::string_view::npos;
  const auto text = is_formula ? "'" + name : name;
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

namespace {

/// Tables with columns of their own: all workloads of such a document have the same.
bool has_figures(const Document& document) {
  const auto& all = document.prediction.workloads;
  return !all.empty() && !all.front().rows.empty() && !all.front().rows.front().figures.empty();
}

/// What a line rests on: enough to join tables of many runs.
constexpr const char* k_context = "scenario,topology,num_ranks,num_hosts,fidelity,is_extrapolated,is_finished";

std::string context(const Document& document, const WorkloadPrediction& workload, const Row& row) {
  return fmt::format("{},{},{},{},{},{},{}", csv_field(document.prediction.scenario),
                     csv_field(document.prediction.topology), workload.num_ranks, workload.num_hosts,
                     csv_field(document.provenance.fidelity), row.is_extrapolated ? 1 : 0, is_finished(row) ? 1 : 0);
}

std::string figures_csv(const Document& document) {
  std::string out;
  for (const auto& workload : document.prediction.workloads) {
    if (workload.rows.empty()) continue;
    std::string header = "workload,label,size_bytes,time_ps,low_time_ps,high_time_ps,algorithm,protocol";
    for (const auto& figure : workload.rows.front().figures) header += "," + csv_field(figure.key);
    header += fmt::format(",{}", k_context);
    if (out.rfind(header + "\r\n", 0) != 0) out += header + "\r\n";
    for (const auto& row : workload.rows) {
      out += fmt::format("{},{},{},{},{},{},{},{}", csv_field(workload.name), csv_field(row.label), row.size.value,
                         row.time.ps, row.low_time.ps, row.high_time.ps, csv_field(row.algorithm),
                         csv_field(row.protocol));
      for (const auto& figure : row.figures) out += fmt::format(",{:.17g}", figure.value);
      out += fmt::format(",{}\r\n", context(document, workload, row));
    }
  }
  return out;
}

/// Times and rates; empty fields for a row that did not finish.
std::string measures(const Row& row) {
  if (!is_finished(row)) return ",,,,,";
  return fmt::format("{},{},{},{:.17g},{:.17g},{:.17g}", row.time.ps, row.low_time.ps, row.high_time.ps,
                     row.algbw.bytes_per_s, row.busbw.bytes_per_s, row.messages_per_s);
}

}  // namespace

std::string csv(const Document& document) {
  if (has_figures(document)) return figures_csv(document);
  std::string out = fmt::format(
      "workload,size_bytes,time_ps,low_time_ps,high_time_ps,algbw_bytes_per_s,busbw_bytes_per_s,messages_per_s,"
      "algorithm,protocol,channels,bottleneck,{}\r\n",
      k_context);
  for (const auto& workload : document.prediction.workloads) {
    for (const auto& row : workload.rows) {
      out += fmt::format("{},{},{},{},{},{},{},{}\r\n", csv_field(workload.name), row.size.value, measures(row),
                         csv_field(row.algorithm), csv_field(row.protocol), row.channels, csv_field(row.bottleneck),
                         context(document, workload, row));
    }
  }
  return out;
}

}  // namespace fabricast::report
