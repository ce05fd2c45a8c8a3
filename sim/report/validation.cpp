// SPDX-License-Identifier: Apache-2.0
// Predicted against measured, per size and in sum. Fractions in JSON and CSV, percent in text.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/csv_field.hpp"
#include "report/json_parts.hpp"
#include "report/report.hpp"

namespace fabricast::report {

namespace {

std::string summary_line(const ValidationSummary& s) {
  return fmt::format(
      "points {}  median |error| {:.1f}%  90th percentile {:.1f}%  max {:.1f}%  bias {:+.1f}%  in band {:.0f}%",
      s.num_points, 100 * s.median_abs_error, 100 * s.p90_abs_error, 100 * s.max_abs_error, 100 * s.bias,
      100 * s.interval_coverage);
}

/// Not beside a setting that explains more: the term would be the wrong place to look.
std::string explanation_line(const Validation& log, const WorkloadPrediction& workload, bool has_setting) {
  if (!log.explanation || has_setting) return "";
  const auto& e = *log.explanation;
  std::string sizes;
  for (const auto size : e.worst_sizes) sizes += (sizes.empty() ? "" : ", ") + key_text(workload, size);
  return fmt::format(
      "# most of the error goes when the time of {} is {:.2f} times as long: median {:.1f}%; worst at {}\n",
      e.parameter, e.factor, 100 * e.median_abs_error, sizes);
}

/// What would explain the logs together; says so when nothing does.
std::string settings_lines(const Validated& validated) {
  if (validated.num_tried == 0) return "";
  if (validated.settings.empty())
    return fmt::format("# settings: {} tried, none stands out as an explanation of the error\n", validated.num_tried);
  std::string out =
      fmt::format("# settings: {} tried; measured under one of these, most likely the first?\n", validated.num_tried);
  for (const auto& one : validated.settings)
    out +=
        fmt::format("#   {}: median |error| {:.1f}% -> {:.1f}%, in band {:.0f}% -> {:.0f}%\n", one.setting,
                    100 * one.median_before, 100 * one.median_after, 100 * one.inside_before, 100 * one.inside_after);
  return out;
}

Json settings_json(const Validated& validated) {
  auto out = Json::array();
  for (const auto& one : validated.settings) {
    out.push_back({{"setting", one.setting},
                   {"median_abs_error_before", one.median_before},
                   {"median_abs_error", one.median_after},
                   {"mean_log_error_before", one.mean_before},
                   {"mean_log_error", one.mean_after},
                   {"interval_coverage_before", one.inside_before},
                   {"interval_coverage", one.inside_after}});
  }
  return out;
}

/// One line when all agree, else one per size that differs.
std::string choice_lines(const Validation& log) {
  if (log.choices.empty()) return "";
  std::string differing;
  std::size_t num_same = 0;
  std::size_t num_same_channels = 0;
  for (const auto& choice : log.choices) {
    num_same += choice.agrees() ? 1 : 0;
    num_same_channels += choice.channels_agree() ? 1 : 0;
    if (choice.agrees() && choice.channels_agree()) continue;
    differing += fmt::format("#   {}: NCCL {} {}{}, forecast {} {}, {} channels\n", to_string(choice.size),
                             choice.logged_algorithm, choice.logged_protocol,
                             choice.logged_channels > 0 ? fmt::format(", {} channels", choice.logged_channels) : "",
                             choice.predicted_algorithm, choice.predicted_protocol, choice.predicted_channels);
  }
  return fmt::format(
             "# NCCL's own choice (tuning lines): algorithm and protocol agree at {} of {} sizes, channels at {}\n",
             num_same, log.choices.size(), num_same_channels) +
         differing;
}

Json choices_json(const Validation& log) {
  auto out = Json::array();
  for (const auto& choice : log.choices) {
    out.push_back({{"size_bytes", choice.size.value},
                   {"predicted_algorithm", choice.predicted_algorithm},
                   {"predicted_protocol", choice.predicted_protocol},
                   {"predicted_channels", choice.predicted_channels},
                   {"logged_algorithm", choice.logged_algorithm},
                   {"logged_protocol", choice.logged_protocol},
                   {"logged_channels", choice.logged_channels},
                   {"agrees", choice.agrees()}});
  }
  return out;
}

/// Whether the forecast of a size lies outside the range of a fit.
bool is_extrapolated(const WorkloadPrediction& workload, Bytes size) {
  const auto row = std::find_if(workload.rows.begin(), workload.rows.end(),
                                [&](const Row& one) { return key_of(workload, one) == size && one.is_extrapolated; });
  return row != workload.rows.end();
}

}  // namespace

Json summary_json(const ValidationSummary& s) {
  return {{"num_points", s.num_points},
          {"median_abs_error", s.median_abs_error},
          {"p90_abs_error", s.p90_abs_error},
          {"max_abs_error", s.max_abs_error},
          {"bias", s.bias},
          {"interval_coverage", s.interval_coverage}};
}

std::string validation_text(const Validated& validated) {
  std::string out = fmt::format("# validation of scenario '{}'\n", validated.scenario);
  for (const auto& log : validated.logs) {
    out += fmt::format("# measured: {}\n", log.file);
    if (log.points.empty() && !log.choices.empty()) {
      out += choice_lines(log);
      continue;
    }
    const auto benchmark = validated.workload->benchmark;
    const bool has_names = benchmark == Benchmark::gpu_sharing;
    out += fmt::format("#{:>12}{:>15}{:>15}{:>9}{:>15}{:>15}  {}\n",
                       benchmark == Benchmark::training ? "GPUs" : (has_names ? "client" : "size"), "predicted(us)",
                       "measured(us)", "error", "low(us)", "high(us)", "in band");
    for (const auto& point : log.points) {
      const auto key = has_names ? key_text(*validated.workload, point.size) : std::to_string(point.size.value);
      out += fmt::format("{:>13}{:>15.2f}{:>15.2f}{:>8.1f}%{:>15.2f}{:>15.2f}  {}\n", key, point.predicted.us(),
                         point.measured.us(), 100 * point.relative_error, point.low.us(), point.high.us(),
                         point.is_inside_band ? "yes" : "no");
    }
    out += fmt::format("# {}\n", summary_line(log.summary));
    out += explanation_line(log, *validated.workload, !validated.settings.empty());
    out += choice_lines(log);
    for (const auto& warning : log.warnings) out += fmt::format("# note: {}\n", warning.message);
  }
  if (validated.logs.size() > 1) out += fmt::format("# all logs: {}\n", summary_line(validated.overall));
  return out + settings_lines(validated);
}

std::string validation_json(const Validated& validated) {
  Json out{{"schema", "fabricast/validation/1"}, {"scenario", validated.scenario}};
  out.update(summary_json(validated.overall));
  out.update(provenance_json(*validated.provenance));
  out["num_ranks"] = validated.workload->num_ranks;
  out["num_hosts"] = validated.workload->num_hosts;
  out["num_settings_tried"] = validated.num_tried;
  out["settings"] = settings_json(validated);
  out["logs"] = Json::array();
  for (const auto& log : validated.logs) {
    auto item = summary_json(log.summary);
    item["file"] = log.file;
    item["points"] = Json::array();
    for (const auto& point : log.points) {
      item["points"].push_back({{"size_bytes", point.size.value},
                                {"predicted_time_ps", point.predicted.ps},
                                {"measured_time_ps", point.measured.ps},
                                {"low_time_ps", point.low.ps},
                                {"high_time_ps", point.high.ps},
                                {"relative_error", point.relative_error},
                                {"is_inside_band", point.is_inside_band},
                                {"is_extrapolated", is_extrapolated(*validated.workload, point.size)}});
    }
    if (log.explanation && validated.settings.empty()) {
      item["explanation"] = {{"parameter", log.explanation->parameter},
                             {"factor", log.explanation->factor},
                             {"median_abs_error", log.explanation->median_abs_error}};
    }
    if (!log.choices.empty()) item["choices"] = choices_json(log);
    item["warnings"] = Json::array();
    for (const auto& warning : log.warnings) item["warnings"].push_back(warning.message);
    out["logs"].push_back(std::move(item));
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string validation_csv(const Validated& validated) {
  std::string out =
      "file,size_bytes,predicted_time_ps,measured_time_ps,low_time_ps,high_time_ps,relative_error,is_inside_band,"
      "scenario,num_ranks,num_hosts,fidelity,is_extrapolated\r\n";
  const auto& workload = *validated.workload;
  for (const auto& log : validated.logs) {
    for (const auto& point : log.points) {
      out += fmt::format("{},{},{},{},{},{},{:.6g},{},{},{},{},{},{}\r\n", csv_field(log.file), point.size.value,
                         point.predicted.ps, point.measured.ps, point.low.ps, point.high.ps, point.relative_error,
                         point.is_inside_band ? 1 : 0, csv_field(validated.scenario), workload.num_ranks,
                         workload.num_hosts, csv_field(validated.provenance->fidelity),
                         is_extrapolated(workload, point.size) ? 1 : 0);
    }
  }
  return out;
}

}  // namespace fabricast::report
