// SPDX-License-Identifier: Apache-2.0
// What pages with live plots carry with them: uPlot with its licence, and the code that hands it our figures.
#pragma once

#include <string_view>

namespace fabricast::report {

std::string_view plot_style();
std::string_view plot_script();

}  // namespace fabricast::report
