// SPDX-License-Identifier: Apache-2.0
// Colours, widths and words of pictures.
#pragma once

#include <string>

#include "fabricast/topology.hpp"

namespace fabricast::exchange {

const char* colour_of(DeviceKind kind);
/// Text as SVG shows it.
std::string escaped(const std::string& text);
/// At most `most` bytes; the cut is never inside one of several bytes.
std::string shortened(const std::string& text, std::size_t most);
/// Of a line, by what it carries.
double width_of(Bandwidth rate);

/// Shares in use at which the colour of a link changes, and the class of a share: heat0 below the first.
constexpr double k_heat_limits[] = {0.05, 0.25, 0.5, 0.75};
int heat_of_share(double share);
extern const char* const k_heat_style;

}  // namespace fabricast::exchange
