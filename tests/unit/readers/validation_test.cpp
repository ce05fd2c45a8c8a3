// SPDX-License-Identifier: Apache-2.0
#include "fabricast/validation.hpp"

#include <doctest/doctest.h>

#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

Row predicted_row(Bytes size, Duration time, Duration low, Duration high) {
  Row row;
  row.size = size;
  row.time = time;
  row.low_time = low;
  row.high_time = high;
  row.algbw = average_rate(size, time);
  row.busbw = row.algbw;
  return row;
}

MeasuredRow measured_row(Bytes size, Duration time) {
  MeasuredRow row;
  row.size = size;
  row.time = time;
  return row;
}

WorkloadPrediction all_reduce_prediction() {
  WorkloadPrediction prediction;
  prediction.name = "all-reduce";
  prediction.benchmark = Benchmark::all_reduce_perf;
  prediction.num_ranks = 8;
  return prediction;
}

MeasuredLog all_reduce_log() {
  MeasuredLog log;
  log.file = "log.txt";
  log.benchmark = Benchmark::all_reduce_perf;
  log.header.num_ranks = 8;
  return log;
}

}  // namespace

TEST_CASE("a percentile interpolates linearly between order statistics") {
  // position 0.9 x (5 - 1) = 3.6: between 4 and 10, six tenths of the way
  CHECK(percentile({10, 1, 2, 3, 4}, 0.9) == test::approx(4 + 0.6 * 6));
  CHECK(percentile({10, 1, 2, 3, 4}, 0.5) == test::approx(3));
  CHECK(percentile({1, 2}, 0.5) == test::approx(1.5));
  CHECK(percentile({7}, 0.9) == test::approx(7));
  CHECK(percentile({}, 0.9) == 0);
}

TEST_CASE("errors are relative to the measured time, positive when the prediction is too slow") {
  auto prediction = all_reduce_prediction();
  auto log = all_reduce_log();
  prediction.rows = {predicted_row(8_B, 11_us, 9_us, 12_us), predicted_row(16_B, 8_us, 7_us, 9_us),
                     predicted_row(32_B, 15_us, 14_us, 16_us)};
  log.rows = {measured_row(8_B, 10_us), measured_row(16_B, 10_us), measured_row(32_B, 10_us)};
  const auto validation = validate(prediction, log);
  REQUIRE(validation.points.size() == 3);
  CHECK(validation.points[0].relative_error == test::approx(0.1));
  CHECK(validation.points[1].relative_error == test::approx(-0.2));
  CHECK(validation.points[2].relative_error == test::approx(0.5));
  CHECK(validation.points[0].is_inside_band);
  CHECK_FALSE(validation.points[1].is_inside_band);
  const auto& summary = validation.summary;
  CHECK(summary.num_points == 3);
  CHECK(summary.median_abs_error == test::approx(0.2));
  CHECK(summary.p90_abs_error == test::approx(0.2 + 0.8 * 0.3));  // position 1.8
  CHECK(summary.max_abs_error == test::approx(0.5));
  CHECK(summary.bias == test::approx(0.1));
  CHECK(summary.interval_coverage == test::approx(1.0 / 3));
  CHECK(validation.warnings.empty());
}

TEST_CASE("sizes without a partner are listed on their side") {
  auto prediction = all_reduce_prediction();
  auto log = all_reduce_log();
  prediction.rows = {predicted_row(8_B, 10_us, 10_us, 10_us), predicted_row(64_B, 10_us, 10_us, 10_us)};
  log.rows = {measured_row(8_B, 10_us), measured_row(16_B, 10_us)};
  const auto validation = validate(prediction, log);
  CHECK(validation.unpredicted_sizes == std::vector<Bytes>{16_B});
  CHECK(validation.unmeasured_sizes == std::vector<Bytes>{64_B});
  CHECK(validation.points.size() == 1);
}

TEST_CASE("a size measured several times counts once, with the median time") {
  auto prediction = all_reduce_prediction();
  auto log = all_reduce_log();
  prediction.rows = {predicted_row(8_B, 11_us, 10_us, 12_us)};
  log.rows = {measured_row(8_B, 10_us), measured_row(8_B, 90_us), measured_row(8_B, 11_us)};
  const auto validation = validate(prediction, log);
  REQUIRE(validation.points.size() == 1);
  CHECK(validation.points[0].measured == 11_us);
  CHECK(validation.points[0].num_measured == 3);
}

TEST_CASE("rows of size 0 count for OSU latency and are left out for nccl-tests") {
  auto prediction = all_reduce_prediction();
  auto log = all_reduce_log();
  prediction.rows = {predicted_row(0_B, 1_us, 1_us, 1_us), predicted_row(8_B, 1_us, 1_us, 1_us)};
  log.rows = {measured_row(0_B, 2_us), measured_row(8_B, 2_us)};
  CHECK(validate(prediction, log).points.size() == 1);
  CHECK(sizes_of(log) == std::vector<Bytes>{8_B});
  prediction.benchmark = Benchmark::osu_latency;
  log.format = LogFormat::osu;
  log.benchmark = Benchmark::osu_latency;
  CHECK(validate(prediction, log).points.size() == 2);
  CHECK(sizes_of(log) == std::vector<Bytes>{0_B, 8_B});
}

TEST_CASE("comparing another benchmark or another number of ranks is warned of") {
  auto prediction = all_reduce_prediction();
  auto log = all_reduce_log();
  prediction.rows = {predicted_row(8_B, 1_us, 1_us, 1_us)};
  log.rows = {measured_row(8_B, 1_us)};
  log.benchmark = Benchmark::broadcast_perf;
  log.header.num_ranks = 16;
  const auto validation = validate(prediction, log);
  REQUIRE(validation.warnings.size() == 2);
  CHECK(validation.warnings[0].message == "the log is of broadcast_perf, the prediction of all_reduce_perf");
  CHECK(validation.warnings[1].message == "the log has 16 ranks, the prediction 8");
}

TEST_CASE("no common size gives an empty summary and a warning") {
  const auto validation = validate(all_reduce_prediction(), all_reduce_log());
  CHECK(validation.summary.num_points == 0);
  CHECK(validation.summary.median_abs_error == 0);
  REQUIRE(validation.warnings.size() == 1);
  CHECK(validation.warnings[0].message == "no size is both predicted and measured");
}

TEST_CASE("the summary of several validations weighs every point alike") {
  Validation a, b;
  a.points.resize(3);
  b.points.resize(1);
  for (auto& point : a.points) point.relative_error = 0.1;
  b.points[0].relative_error = -0.5;
  const std::vector<Validation> both{a, b};
  const auto summary = summarize(both);
  CHECK(summary.num_points == 4);
  CHECK(summary.median_abs_error == test::approx(0.1));
  CHECK(summary.max_abs_error == test::approx(0.5));
}
