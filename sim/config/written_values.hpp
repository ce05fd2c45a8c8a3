// SPDX-License-Identifier: Apache-2.0
// Values that are written in a form of their own: PCIe slots and lengths. Each reader says whether the text is one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace fabricast::config {

/// Widths of a link [PCIe base specification 1.1 to 6.0, "link width"].
inline constexpr std::array k_lanes{1, 2, 4, 8, 12, 16, 32};

/// "gen3 x16"
inline bool read_slot(const std::string& text, int& generation, int& width) {
  char end = 0;
  return std::sscanf(text.c_str(), "gen%d x%d%c", &generation, &width, &end) == 2 && generation >= 1 &&
         generation <= 6 && std::ranges::find(k_lanes, width) != k_lanes.end();
}

/// "3 m", "50 cm"
inline bool read_length(const std::string& text, double& metres) {
  char unit[8] = {};
  char end = 0;
  const int read = std::sscanf(text.c_str(), "%lf %7[a-z]%c", &metres, unit, &end);
  if (read != 2 || !(metres >= 0) || metres > 1e5) return false;
  const std::string_view name(unit);
  if (name == "cm") metres /= 100;
  if (name == "km") metres *= 1000;
  return name == "m" || name == "cm" || name == "km";
}

}  // namespace fabricast::config
