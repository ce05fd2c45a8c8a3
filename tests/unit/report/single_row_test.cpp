// SPDX-License-Identifier: Apache-2.0
// Pages and pictures of forecasts and validations of one size.
#include <doctest/doctest.h>

#include "fabricast/validation.hpp"
#include "report/report.hpp"

using namespace fabricast;

namespace {

Row row(std::int64_t size, double us) {
  Row out;
  out.size = Bytes{size};
  out.time = from_seconds(us * 1e-6);
  out.low_time = from_seconds(us * 0.8e-6);
  out.high_time = from_seconds(us * 1.3e-6);
  out.algbw = out.busbw = Bandwidth{static_cast<double>(size) / (us * 1e-6)};
  out.terms = {{"transfer over x", out.time, "x", ""}};
  return out;
}

Prediction prediction(std::vector<Row> rows) {
  Prediction out;
  WorkloadPrediction workload;
  workload.name = "w";
  workload.benchmark = Benchmark::iperf3;
  workload.num_ranks = 1;
  workload.num_hosts = 2;
  workload.rows = std::move(rows);
  out.workloads.push_back(std::move(workload));
  return out;
}

}  // namespace

TEST_CASE("a page of one row says its figures in words, a curve of one dot shows nothing") {
  Scenario asked;
  asked.workloads.resize(1);
  const auto one = prediction({row(131072, 80)});
  const auto page = report::html({one, asked, {}});
  CHECK(page.find("<b>80.0 us</b>, with 80 % between 64.0 us and 104 us") != std::string::npos);
  CHECK(page.find("bandwidth <b>1.64 GB/s</b>, 1.26 GB/s to 2.05 GB/s") != std::string::npos);
  CHECK(page.find(": 1 rank on 2 hosts") != std::string::npos);
  const auto several = prediction({row(65536, 40), row(131072, 80)});
  const auto curves = report::html({several, asked, {}});
  for (const auto* curve : {"Predicted time with its", "Bandwidth."}) {
    CHECK_MESSAGE(page.find(curve) == std::string::npos, curve);
    CHECK_MESSAGE(curves.find(curve) != std::string::npos, curve);
  }
}

TEST_CASE("a validation of one size has a band and stands in the middle of its picture") {
  Validation log;
  log.file = "log.txt";
  ValidationPoint point;
  point.size = Bytes{131072};
  point.predicted = from_seconds(80e-6);
  point.low = from_seconds(64e-6);
  point.high = from_seconds(104e-6);
  point.measured = from_seconds(70e-6);
  log.points = {point};
  const auto one = prediction({row(131072, 80)});
  const report::Provenance provenance;
  const std::vector<Validation> logs{log};
  const report::Validated validated{logs, {}, "s", &one.workloads.front(), &provenance, {}, 0};
  const auto picture = report::validation_svg(validated);
  CHECK_MESSAGE(picture.find("<circle class=\"measured\" cx=\"438.0\"") != std::string::npos, picture);
  CHECK_MESSAGE(picture.find("<polygon class=\"band\" points=\"426.0,") != std::string::npos, picture);
}
