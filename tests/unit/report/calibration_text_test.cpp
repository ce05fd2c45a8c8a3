// SPDX-License-Identifier: Apache-2.0
// The text of a fit's report.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "fabricast/calibration.hpp"
#include "report/report.hpp"
#include "report/tables.hpp"

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

TEST_CASE("sizes outside the range of a fit are named below the table, in runs") {
  WorkloadPrediction workload;
  for (const std::int64_t bytes : {8, 16, 32, 64, 128}) {
    Row row;
    row.size = Bytes{bytes};
    row.is_extrapolated = bytes == 8 || bytes > 32;
    workload.rows.push_back(row);
  }
  CHECK(report::extrapolation_note(workload).find("band: 8 B, 64 B .. 128 B") != std::string::npos);
  for (auto& row : workload.rows) row.is_extrapolated = false;
  CHECK(report::extrapolation_note(workload).empty());
}
