// SPDX-License-Identifier: Apache-2.0
// The legal range of every parameter and device field, by name and by dimension. A value outside is a slip of the pen
// (98 for 0.98, a missing sign or unit), never a machine.
#pragma once

#include <string>
#include <string_view>

#include "fabricast/units.hpp"

namespace fabricast {

struct ParameterRange {
  double low = 0, high = 0;  ///< SI base units; both may be reached
  std::string_view what;     ///< as messages call it: "a share above 0"
  bool is_declared = false;  ///< by name; else by its dimension alone
  [[nodiscard]] bool holds(double value) const { return low <= value && value <= high; }
};

/// The range of `name`: `<layer>.<...>` or `<device>.<field>`.
ParameterRange range_of(std::string_view name, Dimension dimension);

/// "0.001 to 1", "0 s to 10 s", "1 kB/s to 1000 TB/s": in the unit of the dimension.
std::string to_string(const ParameterRange& range, Dimension dimension);

}  // namespace fabricast
