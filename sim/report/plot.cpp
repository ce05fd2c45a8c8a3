// SPDX-License-Identifier: Apache-2.0
#include "report/plot.hpp"
#include "report/json_parts.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/page.hpp"

namespace fabricast::report {

namespace {

constexpr std::size_t k_largest_data = 16U << 20;  ///< of the results inside a page

Json axis_json(const PlotAxis& axis) {
  return {{"label", axis.label}, {"unit", axis.unit}, {"log", axis.log}, {"zero", axis.starts_at_zero}};
}

/// JSON inside a script element: nothing may look like its end.
std::string shielded(const std::string& json) {
  std::string out;
  for (const char c : json) out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

}  // namespace

std::string plotted(const std::string& caption, const std::string& picture, const Plot& plot) {
  Json json{{"x", axis_json(plot.x)}, {"y", axis_json(plot.y)}};
  json["series"] = Json::array();
  for (const auto& one : plot.series) {
    if (one.x.empty()) continue;
    Json series{{"label", one.label}, {"colour", one.colour}, {"line", one.is_line}, {"faint", one.is_faint},
                {"size", one.size},   {"x", one.x},           {"y", one.y}};
    if (!one.low.empty()) {
      series["low"] = one.low;
      series["high"] = one.high;
    }
    if (!one.notes.empty()) series["notes"] = one.notes;
    json["series"].push_back(std::move(series));
  }
  return fmt::format(
      "<figure class=\"plotted\"><figcaption>{}</figcaption><div class=\"wide picture\">\n{}</div>\n<script "
      "type=\"application/json\" class=\"plot\">{}</script></figure>\n",
      escaped(caption), picture, shielded(json.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

std::string embedded_json(const std::string& json) {
  if (json.size() > k_largest_data) return "";
  return fmt::format("<script type=\"application/json\" id=\"results\">{}</script>\n", shielded(json));
}

}  // namespace fabricast::report
