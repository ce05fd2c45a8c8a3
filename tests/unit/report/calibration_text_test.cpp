// SPDX-License-Identifier: Apache-2.0
// The text of a fit's report.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fabricast/calibration.hpp"
#include "report/report.hpp"

using namespace fabricast;

TEST_CASE("a fit names a few of the parameters that no forecast uses and counts the others") {
  CalibrationReport report;
  for (int i = 0; i < 12; ++i) {
    FittedParameter unused;
    unused.parameter.name = fmt::format("layer.unused{}", i);
    unused.determination = Determination::unused;
    report.parameters.push_back(unused);
  }
  const auto text = report::calibration_text(report);
  CHECK(text.find("layer.unused0, layer.unused1") != std::string::npos);
  CHECK(text.find("and 4 more") != std::string::npos);
  CHECK(text.find("layer.unused8") == std::string::npos);
  CHECK(report::calibration_json(report).find("layer.unused11") != std::string::npos);
}
