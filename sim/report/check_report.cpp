// SPDX-License-Identifier: Apache-2.0
// What `check` and `calibrate` find, as pages; the former as JSON too.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/inputs.hpp"
#include "report/json_parts.hpp"
#include "report/page.hpp"
#include "report/plot.hpp"
#include "report/report.hpp"

namespace fabricast::report {

std::string check_json(std::span<const CheckedFile> files, const std::string& version) {
  Json out{{"schema", "fabricast/check/1"}, {"tool", {{"name", "fabricast"}, {"version", version}}}};
  out["files"] = Json::array();
  for (const auto& file : files) {
    Json one{{"path", file.path}, {"is_usable", !has_errors(file.found)}, {"features", file.features}};
    one["inputs"] = inputs_json(sums_of(file.inputs));
    one["found"] = Json::array();
    for (const auto& found : file.found) {
      Json notes = Json::array();
      for (const auto& note : found.notes) notes.push_back(note.text);
      one["found"].push_back({{"severity", found.severity == Severity::error ? "error" : "warning"},
                              {"file", found.location.file},
                              {"line", found.location.line},
                              {"column", found.location.column},
                              {"message", found.message},
                              {"notes", notes}});
    }
    out["files"].push_back(std::move(one));
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string check_html(std::span<const CheckedFile> files, const std::string& version) {
  std::string out = fmt::format("<h1>Check</h1>\n<p class=\"sub\">fabricast {}</p>\n", escaped(version));
  for (const auto& file : files) {
    const auto* verdict = has_errors(file.found) ? "cannot be used" : file.found.empty() ? "ok" : "ok, with doubts";
    out += fmt::format("<h2>{}: {}</h2>\n", escaped(file.path), verdict);
    if (!file.found.empty()) out += "<ul>\n";
    for (const auto& one : file.found) {
      out += fmt::format("<li><b>{}</b> {}:{}: {}", one.severity == Severity::error ? "error" : "warning",
                         escaped(one.location.file), one.location.line, escaped(one.message));
      for (const auto& note : one.notes) out += fmt::format("<br>{}", escaped(note.text));
      out += "</li>\n";
    }
    if (!file.found.empty()) out += "</ul>\n";
    if (!file.features.empty()) out += fmt::format("<pre>{}</pre>\n", escaped(file.features));
    out += inputs_html(sums_of(file.inputs));
  }
  return page("check", out + embedded_json(check_json(files, version)));
}

namespace {

/// Errors of every point over its size: fitted, held out, and those that look like bad runs.
std::string error_plot(const CalibrationReport& report) {
  Plot plot;
  plot.x = {"size", "bytes", 2, false};
  plot.y = {"error of the forecast (%)", "number", 0, false};
  plot.series = {{"fitted", "--c0", false, false, 6, {}, {}, {}, {}, {}},
                 {"held out", "--c1", false, false, 7, {}, {}, {}, {}, {}},
                 {"outlier", "--soft", false, true, 6, {}, {}, {}, {}, {}}};
  for (const auto& point : report.points) {
    if (point.size.value <= 0) continue;  // training steps have no size
    auto& series = plot.series[point.is_outlier ? 2 : point.is_fitted ? 0 : 1];
    series.x.push_back(static_cast<double>(point.size.value));
    series.y.push_back(100 * point.relative_error);
    series.notes.push_back(fmt::format("{}: {}: measured {}, predicted {} ({} .. {})", report.logs[point.log].name,
                                       to_string(point.size), to_string(point.measured), to_string(point.predicted),
                                       to_string(point.low), to_string(point.high)));
  }
  std::erase_if(plot.series, [](const PlotSeries& one) { return one.x.empty(); });
  if (plot.series.empty()) return "";
  return plotted("Error of every measured point after the fit.", picture_of(plot), plot);
}

}  // namespace

std::string calibration_html(const CalibrationReport& report) {
  return page("calibration " + report.name,
              fmt::format("<h1>Calibration {}</h1>\n", escaped(report.name)) + error_plot(report) +
                  fmt::format("<pre>{}</pre>\n<h2>Provenance</h2>\n", escaped(calibration_text(report))) +
                  inputs_html(sums_of(report.inputs)) + embedded_json(calibration_json(report)));
}

}  // namespace fabricast::report
