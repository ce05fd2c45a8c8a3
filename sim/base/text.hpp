// SPDX-License-Identifier: Apache-2.0
// Values and words as files and tables show them.
#pragma once

#include <string>
#include <string_view>

#include "fabricast/units.hpp"

namespace fabricast {

/// A value in SI base units with the unit that suits its size; plain numbers with `digits` significant digits.
std::string quantity_text(double value, Dimension dimension, int digits);

/// `text` as a double-quoted YAML scalar.
std::string yaml_quoted(std::string_view text);

}  // namespace fabricast
