# SPDX-License-Identifier: Apache-2.0
# Run with -P: writes OUTPUT, C++ texts of the script and style of pages: uPlot's and our own.
file(READ "${UPLOT}/uPlot.iife.min.js" uplot)
file(READ "${UPLOT}/uPlot.min.css" style)
file(READ "${UPLOT}/LICENSE" licence)
file(READ "${PLOTS}" plots)
file(WRITE "${OUTPUT}" "// Made by cmake/EmbedPage.cmake from third_party/uplot and sim/report/plots.js.\n#include \"report/script.hpp\"\n\nnamespace fabricast::report {\n\n"
  "std::string_view plot_style() { return R\"~page~(${style})~page~\"; }\n"
  "std::string_view plot_script() {\n  return R\"~page~(/* uPlot. ${licence} */\n${uplot}\n)~page~\"\n         R\"~page~(${plots})~page~\";\n}\n\n}  // namespace fabricast::report\n")
