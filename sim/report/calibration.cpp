// SPDX-License-Identifier: Apache-2.0
// What a fit found: parameters with unit and interval, errors seen and unseen, outliers and regime changes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/inputs.hpp"
#include "report/json_parts.hpp"
#include "report/report.hpp"
#include "report/tables.hpp"

namespace fabricast {

std::string_view to_string(Determination determination) {
  switch (determination) {
    case Determination::determined:
      return "determined";
    case Determination::undetermined:
      return "undetermined";
    case Determination::unused:
      return "unused";
    case Determination::at_bound:
      return "at bound";
  }
  return "";
}

}  // namespace fabricast

namespace fabricast::report {

namespace {

/// Patterns of a calibration file can name a hundred parameters that its logs do not use.
constexpr std::size_t k_unused_shown = 8;

std::string shown(double value, Dimension dimension) { return quantity_text(value, dimension, 3); }

std::string parameter_lines(const CalibrationReport& report) {
  std::size_t widest = 9;
  std::string unused;
  std::size_t num_unused = 0;
  for (const auto& p : report.parameters) {
    if (p.determination == Determination::unused) {
      if (num_unused++ < k_unused_shown) unused += (unused.empty() ? "" : ", ") + p.parameter.name;
    } else {
      widest = std::max(widest, p.parameter.name.size());
    }
  }
  std::string out =
      fmt::format("# {:<{}}{:>12}{:>12}  {:<26}{}\n", "parameter", widest, "start", "fitted", "80 % interval", "data");
  for (const auto& p : report.parameters) {
    if (p.determination == Determination::unused) continue;
    const auto d = p.parameter.dimension;
    const bool is_fitted = p.determination == Determination::determined || p.determination == Determination::at_bound;
    const auto interval = is_fitted ? range_text(shown(p.parameter.low, d), shown(p.parameter.high, d))
                                    : std::string("kept at its prior");
    out += fmt::format("  {:<{}}{:>12}{:>12}  {:<26}{}{}\n", p.parameter.name, widest, shown(p.start, d),
                       shown(p.parameter.value, d), interval, to_string(p.determination),
                       p.entangled_with.empty() ? "" : fmt::format(", entangled with {}", p.entangled_with));
  }
  if (num_unused > k_unused_shown)
    unused += fmt::format(" and {} more (named in the JSON report)", num_unused - k_unused_shown);
  if (!unused.empty()) out += fmt::format("# no forecast of these logs depends on: {}\n", unused);
  return out;
}

std::string error_line(const std::string& name, const ValidationSummary& s) {
  return fmt::format("  {:<24}{:>7}{:>9.1f}%{:>9.1f}%{:>9.1f}%{:>+9.1f}%{:>9.0f}%\n", name, s.num_points,
                     100 * s.median_abs_error, 100 * s.p90_abs_error, 100 * s.max_abs_error, 100 * s.bias,
                     100 * s.interval_coverage);
}

std::string log_lines(const CalibrationReport& report) {
  std::size_t widest = 4;
  for (const auto& log : report.logs) widest = std::max(widest, log.name.size());
  auto out = fmt::format("# {:<{}}{:>7}{:>7}{:>10}{:>10}{:>10}{:>9}{:>9}{:>12}\n", "log", widest, "ranks", "hosts",
                         "before", "median", "90th", "in band", "noise", "without it");
  for (const auto& log : report.logs) {
    out += fmt::format("  {:<{}}{:>7}{:>7}{:>9.1f}%{:>9.1f}%{:>9.1f}%{:>8.0f}%{:>9}{:>12}{}\n", log.name, widest,
                       log.num_ranks, log.num_hosts, 100 * log.error_before, 100 * log.summary.median_abs_error,
                       100 * log.summary.p90_abs_error, 100 * log.summary.interval_coverage,
                       log.noise_floor > 0 ? fmt::format("{:.1f}%", 100 * log.noise_floor) : "-",
                       log.error_without < 0 ? "-" : fmt::format("{:.1f}%", 100 * log.error_without),
                       log.is_held_out ? "  held out" : "");
  }
  return out;
}

/// Logs, points and sizes that do not fit in.
std::string remark_lines(const CalibrationReport& report) {
  std::string out;
  for (const auto& log : report.logs) {
    if (log.is_odd)
      out += fmt::format("# odd log: {} is {:.0f}% off when the others forecast it: check its scenario, or the run\n",
                         log.name, 100 * log.error_without);
  }
  for (const auto& p : report.points) {
    if (p.is_outlier)
      out += fmt::format("# outlier: {} at {} B: measured {}, {:+.0f}% off, its neighbours are not\n",
                         report.logs[p.log].name, p.size.value, to_string(p.measured), 100 * p.relative_error);
  }
  for (const auto& change : report.regimes) {
    if (change.error_jump == 0)
      out += fmt::format("# regime: {} at {} B: {}\n", report.logs[change.log].name, change.size.value,
                         change.description);
    else
      out += fmt::format("# regime: {} from {} B: error steps by {:+.0f}%; {}\n", report.logs[change.log].name,
                         change.size.value, 100 * change.error_jump, change.description);
  }
  return out;
}

}  // namespace

std::string calibration_text(const CalibrationReport& report) {
  std::string out = fmt::format("# calibration '{}'\n", report.name);
  if (report.is_interrupted) out += "# interrupted: the best values so far, not the minimum\n";
  out += parameter_lines(report);
  out += fmt::format("# {:<24}{:>7}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "error", "points", "median", "90th", "max",
                     "bias", "in band");
  for (const auto& one : report.errors) {
    if (one.name == "before the fit") out += error_line(one.name, one.summary);
  }
  for (const auto& one : report.errors) {
    if (one.name != "before the fit") out += error_line(one.name, one.summary);
  }
  const auto set_on = report.num_band_points > 0 ? fmt::format("{} left-out points", report.num_band_points)
                                                 : std::string("the fitted points themselves");
  out += fmt::format("# noise of the logs {:.1f}%, 80 % band +-{:.1f}% set on {}, {}\n", 100 * report.noise_floor,
                     100 * report.model_error, set_on,
                     report.extrapolation >= 1
                         ? std::string("beyond their counts that of no fit")
                         : fmt::format("{:.1f}% more per doubling of ranks or hosts", 100 * report.extrapolation));
  return out + log_lines(report) + remark_lines(report);
}

std::string calibration_json(const CalibrationReport& report) {
  Json out{{"schema", "fabricast/calibration_report/1"}, {"name", report.name}};
  out["noise_floor"] = report.noise_floor;
  out["model_error"] = report.model_error;
  out["extrapolation_error"] = report.extrapolation;
  out["num_band_points"] = report.num_band_points;
  out["evaluations"] = report.evaluations;
  out["is_interrupted"] = report.is_interrupted;
  out["inputs"] = inputs_json(sums_of(report.inputs));
  out["parameters"] = Json::array();
  for (const auto& p : report.parameters) {
    out["parameters"].push_back({{"name", p.parameter.name},
                                 {"unit", to_string(p.parameter.dimension)},
                                 {"start", p.start},
                                 {"value", p.parameter.value},
                                 {"low", p.parameter.low},
                                 {"high", p.parameter.high},
                                 {"determination", to_string(p.determination)},
                                 {"entangled_with", p.entangled_with}});
  }
  out["errors"] = Json::array();
  for (const auto& one : report.errors) {
    auto item = summary_json(one.summary);
    item["name"] = one.name;
    out["errors"].push_back(std::move(item));
  }
  out["logs"] = Json::array();
  for (const auto& log : report.logs) {
    auto item = summary_json(log.summary);
    item.update({{"file", log.file},
                 {"name", log.name},
                 {"num_ranks", log.num_ranks},
                 {"num_hosts", log.num_hosts},
                 {"is_held_out", log.is_held_out},
                 {"noise_floor", log.noise_floor},
                 {"median_abs_error_before", log.error_before},
                 {"error_without", log.error_without},
                 {"is_odd", log.is_odd}});
    out["logs"].push_back(std::move(item));
  }
  out["points"] = Json::array();
  for (const auto& p : report.points) {
    out["points"].push_back({{"log", p.log},
                             {"size_bytes", p.size.value},
                             {"measured_time_ps", p.measured.ps},
                             {"predicted_time_ps", p.predicted.ps},
                             {"low_time_ps", p.low.ps},
                             {"high_time_ps", p.high.ps},
                             {"relative_error", p.relative_error},
                             {"is_fitted", p.is_fitted},
                             {"is_extrapolated", p.is_extrapolated},
                             {"is_outlier", p.is_outlier},
                             {"regime", p.regime}});
  }
  out["regimes"] = Json::array();
  for (const auto& change : report.regimes) {
    out["regimes"].push_back({{"log", change.log},
                              {"size_bytes", change.size.value},
                              {"error_jump", change.error_jump},
                              {"description", change.description}});
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fabricast::report
