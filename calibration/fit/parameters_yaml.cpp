// SPDX-License-Identifier: Apache-2.0
// The fitted values as a parameter file, in the units people write.
#include <fmt/format.h>

#include <cmath>

#include "base/text.hpp"
#include "fabricast/calibration.hpp"

namespace fabricast {

namespace {

/// Six significant digits in one unit for the value and its interval.
std::string quantity(double value, double reference, Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return fmt::format("{:.0f} B", value);
    case Dimension::time:
      return reference < 1e-6 ? fmt::format("{:.6g} ns", value * 1e9) : fmt::format("{:.6g} us", value * 1e6);
    case Dimension::bandwidth:
      return fmt::format("{:.6g} GB/s", value * 1e-9);
    case Dimension::number:
      return fmt::format("{:.6g}", value);
  }
  return "";
}

}  // namespace

std::string parameters_yaml(const CalibrationReport& report) {
  std::string out = fmt::format("schema: fabricast/parameters/1\nname: {}\n", yaml_quoted(report.name));
  out += fmt::format("description: made by fabricast calibrate; intervals hold 80 %{}\nparameters:{}\n",
                     report.is_interrupted ? "; interrupted before the minimum" : "",
                     report.fitted.all().empty() ? " {}" : "");
  for (const auto& [name, p] : report.fitted.all()) {
    const auto text = [&one = p](double value) { return quantity(value, one.value, one.dimension); };
    // Rounded for people: the interval must still hold the value.
    const auto interval = p.has_interval() && text(p.low) != text(p.value) && text(p.high) != text(p.value)
                              ? fmt::format("low: {}, high: {}, ", text(p.low), text(p.high))
                              : std::string();
    out += fmt::format("  {}: {{value: {}, {}source: {}, confidence: {}}}\n", name, text(p.value), interval,
                       yaml_quoted(p.source), to_string(p.confidence));
  }
  return out;
}

}  // namespace fabricast
