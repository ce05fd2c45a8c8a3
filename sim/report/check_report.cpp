// SPDX-License-Identifier: Apache-2.0
// What `check` and `calibrate` find, as pages; the former as JSON too.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/page.hpp"
#include "report/plot.hpp"
#include "report/report.hpp"

namespace fabricast::report {

using Json = nlohmann::ordered_json;

std::string check_json(std::span<const CheckedFile> files, const std::string& version) {
  Json out{{"schema", "fabricast/check/1"}, {"tool", {{"name", "fabricast"}, {"version", version}}}};
  out["files"] = Json::array();
  for (const auto& file : files) {
    Json one{{"path", file.path}, {"is_usable", !has_errors(file.found)}, {"features", file.features}};
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
  }
  return page("check", out + embedded_json(check_json(files, version)));
}

std::string calibration_html(const CalibrationReport& report) {
  return page("calibration", fmt::format("<h1>Calibration</h1>\n<pre>{}</pre>\n", escaped(calibration_text(report))) +
                                 embedded_json(calibration_json(report)));
}

}  // namespace fabricast::report
