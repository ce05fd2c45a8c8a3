// SPDX-License-Identifier: Apache-2.0
// Which term explains a misfit, and the plot of it.
#include <doctest/doctest.h>

#include "fabricast/validation.hpp"
#include "report/report.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

/// 10 us of launch and 1 us per KiB of transfer, at 1 to 512 KiB.
WorkloadPrediction two_terms() {
  WorkloadPrediction prediction;
  prediction.name = "two terms";
  prediction.benchmark = Benchmark::osu_latency;
  for (std::int64_t kib = 1; kib <= 512; kib *= 2) {
    Row row;
    row.size = Bytes{kib << 10};
    row.terms = {{"launch", 10_us, "launch_time", ""}, {"transfer", kib * 1_us, "rate", ""}};
    row.time = 10_us + kib * 1_us;
    row.low_time = Duration{row.time.ps * 9 / 10};
    row.high_time = Duration{row.time.ps * 11 / 10};
    prediction.rows.push_back(std::move(row));
  }
  return prediction;
}

MeasuredLog measured(std::int64_t launch_us, double per_kib_us) {
  MeasuredLog log;
  log.file = "a<b>.txt";
  log.format = LogFormat::osu;
  log.benchmark = Benchmark::osu_latency;
  for (std::int64_t kib = 1; kib <= 512; kib *= 2) {
    MeasuredRow row;
    row.size = Bytes{kib << 10};
    row.time = from_seconds(1e-6 * (static_cast<double>(launch_us) + per_kib_us * static_cast<double>(kib)));
    log.rows.push_back(std::move(row));
  }
  return log;
}

}  // namespace

TEST_CASE("an error within what two runs differ by needs no explanation") {
  // One term is `share` of the time and took twice as long: a factor of 2 explains all of the error.
  for (const double share : {1e-4, 1e-3, 0.01, 0.019, 0.03, 0.1}) {
    CAPTURE(share);
    auto prediction = two_terms();
    auto log = measured(10, 1);
    for (std::size_t i = 0; i < prediction.rows.size(); ++i) {
      auto& row = prediction.rows[i];
      const auto further = from_seconds(share * row.time.seconds());
      row.terms.push_back({"further", further, "further_time", ""});
      log.rows[i].time = row.time + further + further;
      row.time = row.time + further;
    }
    const double error = share / (1 + 2 * share);
    CHECK(validate(prediction, log).explanation.has_value() == (error >= 0.02));
  }
}

TEST_CASE("a transfer that is twice as slow as predicted is named with its factor") {
  const auto validation = validate(two_terms(), measured(10, 2));
  REQUIRE(validation.explanation.has_value());
  CHECK(validation.explanation->parameter == "rate");
  CHECK(validation.explanation->factor == test::approx(2).epsilon(0.1));
  CHECK(validation.explanation->median_abs_error < 0.02);
  // Errors grow with the size: (10 + s) / (10 + 2 s).
  CHECK(validation.explanation->worst_sizes.front() == 512_KiB);
}

TEST_CASE("a forecast that fits needs no explanation") {
  CHECK_FALSE(validate(two_terms(), measured(10, 1)).explanation.has_value());
}

TEST_CASE("the plot has a dot and an error bar per point, and escapes names") {
  const std::vector<Validation> logs{validate(two_terms(), measured(12, 1.1))};
  const auto svg = report::validation_svg({logs, summarize(std::span<const Validation>(logs)), "s"});
  const auto count = [&](const std::string& what) {
    int found = 0;
    for (auto at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++found;
    return found;
  };
  CHECK(count("class=\"measured\"") == 10);
  CHECK(count("class=\"error\"") == 10);
  CHECK(count("class=\"band\"") == 1);
  CHECK(count("a&lt;b&gt;") == 1);
  CHECK(count("<b>") == 0);
}
