// SPDX-License-Identifier: Apache-2.0
// Scatter, outliers, regimes and bands, by hand.
#include "fit/errors.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <random>

#include "fabricast/load.hpp"
#include "fit/band.hpp"
#include "fit/dataset.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;

namespace {

std::vector<Bytes> sizes(std::size_t n) {
  std::vector<Bytes> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back({std::int64_t{1024} << i});
  return out;
}

std::vector<CalibrationPoint> points_with(const std::vector<double>& errors) {
  std::vector<CalibrationPoint> out;
  const auto all = sizes(errors.size());
  for (std::size_t i = 0; i < errors.size(); ++i) {
    CalibrationPoint point;
    point.size = all[i];
    point.relative_error = errors[i];
    point.regime = "ring simple";
    out.push_back(point);
  }
  return out;
}

fit::Forecast forecast(double relative_error, double below, double above, double doublings = 0) {
  fit::Forecast one;
  one.point.predicted = from_seconds(1e-3);
  one.point.measured = from_seconds(1e-3 / (1 + relative_error));
  one.point.relative_error = relative_error;
  one.below = below;
  one.above = above;
  one.doublings = doublings;
  return one;
}

}  // namespace

TEST_CASE("slopes, steps and bends of the error are no noise, fewer than five sizes say nothing") {
  CHECK(fit::noise_floor({}) == 0);
  CHECK(fit::noise_floor({0.1, 0, 0.1, 0}) == 0);
  std::vector<double> slope, step, bend;
  for (int i = 0; i < 25; ++i) {
    slope.push_back(0.03 * i);
    step.push_back(i < 11 ? 0 : 0.4);
    bend.push_back(i < 12 ? 0 : 0.05 * (i - 12));
  }
  for (const auto& smooth : {slope, step, bend}) CHECK(fit::noise_floor(smooth) == test::approx(0).epsilon(1e-12));
  // One row off: its own distance is 0.1, the median of the one distance of five sizes.
  CHECK(fit::noise_floor({0, 0, 0.1, 0, 0}) == test::approx(0.1 / 0.393));
}

TEST_CASE("normal noise is found again, also where a quarter of the rows is far off") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> around(0, 1);
  for (const double noise : {0.005, 0.02, 0.08}) {
    double plain = 0;
    double disturbed = 0;
    constexpr int k_draws = 200;
    for (int draw = 0; draw < k_draws; ++draw) {
      std::vector<double> residuals;
      for (int i = 0; i < 25; ++i) residuals.push_back(0.02 * i + noise * around(random));
      plain += fit::noise_floor(residuals) / k_draws;
      for (const std::size_t i : {1U, 4U, 5U, 9U, 10U, 13U}) residuals[i] -= 0.3;
      disturbed += fit::noise_floor(residuals) / k_draws;
    }
    CAPTURE(noise);
    CHECK(plain >= 0.8 * noise);
    CHECK(plain <= 1.2 * noise);
    CHECK(disturbed <= 5.5 * noise);
  }
}

TEST_CASE("an outlier differs from both neighbours in the same direction by more than the limit") {
  const auto marked = [](const std::vector<double>& errors, double limit) {
    auto points = points_with(errors);
    fit::mark_outliers(points, limit);
    std::vector<bool> out;
    for (const auto& point : points) out.push_back(point.is_outlier);
    return out;
  };
  CHECK(marked({0, 0.2, 0, 0}, 0.12) == std::vector<bool>{false, true, false, false});
  CHECK(marked({0, -0.2, 0, 0}, 0.12) == std::vector<bool>{false, true, false, false});
  CHECK(marked({0, 0.2, 0.4, 0.6}, 0.12) == std::vector<bool>{false, false, false, false});  // a slope
  CHECK(marked({0, 0.2, 0.1, 0}, 0.12) == std::vector<bool>{false, false, false, false});    // near one neighbour
  CHECK(marked({0.5, 0, 0, 0.5}, 0.12) == std::vector<bool>{false, false, false, false});    // ends have one neighbour
}

TEST_CASE("a regime changes where the error steps and stays, and the words tell whose change it is") {
  auto points = points_with({0, 0.01, 0.31, 0.3, 0.3});
  auto changes = fit::regime_changes(points, 0.2);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].size == points[2].size);
  CHECK(changes[0].error_jump == test::approx(0.305 - 0.005));
  CHECK(changes[0].description == "the measurement changes regime, the model stays with ring simple");
  points[0].regime = points[1].regime = "ring ll";
  changes = fit::regime_changes(points, 0.2);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].description == "the model changes from ring ll to ring simple");
  CHECK(fit::regime_changes(points, 0.31).empty());
  CHECK(fit::regime_changes(points_with({0, 0, 0.3, 0, 0}), 0.2).empty());  // one bad point
  CHECK(fit::regime_changes(points_with({0, 0, 0.3}), 0.2).empty());        // too short to stay
}

TEST_CASE("an error class counts the points inside their bands, ends included") {
  auto points = points_with({0.1, -0.3, 0.2});
  for (auto& point : points) {
    point.low = from_seconds(1e-3);
    point.high = from_seconds(2e-3);
  }
  points[0].measured = from_seconds(1e-3);
  points[1].measured = from_seconds(2e-3);
  points[2].measured = from_seconds(2.001e-3);
  const auto all = fit::error_class("class", points);
  CHECK(all.name == "class");
  CHECK(all.summary.num_points == 3);
  CHECK(all.summary.median_abs_error == test::approx(0.2));
  CHECK(all.summary.max_abs_error == test::approx(0.3));
  CHECK(all.summary.interval_coverage == test::approx(2.0 / 3));
}

TEST_CASE("a band takes the side on which the measurement lies, and never less than the scatter") {
  // Predicted too slow by 25 %: measured 0.8 of it, distance 0.2 below; the parameters give 0.12 below, 0.5 above.
  const auto below = forecast(0.25, 0.12, 0.5);
  CHECK(fit::model_error_of({below}, 0) == test::approx(0.16));  // sqrt(0.2^2 - 0.12^2)
  // Too fast by 20 %: measured 1.25 of it, 0.25 above.
  const auto above = forecast(-0.2, 0.5, 0.15);
  CHECK(fit::model_error_of({above}, 0) == test::approx(0.2));  // sqrt(0.25^2 - 0.15^2)
  CHECK(fit::model_error_of({above}, 0.3) == test::approx(0.3));
  CHECK(fit::model_error_of({}, 0.07) == test::approx(0.07));
  CHECK(fit::model_error_of({below, above}, 0, [](const fit::Forecast& one) { return one.above < 0.2; }) ==
        test::approx(0.2));
}

TEST_CASE("extrapolation is what is missing beyond the model's error, by doubling, one doubling at least") {
  const auto two = forecast(-0.2, 0, 0.15, 2);  // missing 0.2
  CHECK(fit::extrapolation_error_of({two}, 0.12) == test::approx(0.16 / 2));
  const auto half = forecast(-0.2, 0, 0.15, 0.5);
  CHECK(fit::extrapolation_error_of({half}, 0.12) == test::approx(0.16));
  CHECK(fit::extrapolation_error_of({forecast(-0.2, 0, 0.15, 0)}, 0.12) == -1);
  CHECK(fit::extrapolation_error_of({two}, 0.5) == 0);
}

TEST_CASE("a forecast's band adds model and extrapolation to the parameters' own, and ends at zero") {
  const auto point = fit::with_band(forecast(0, 0.3, 0.4, 3), {0.4, 0.1});
  // hypot(0.4, 0.3) = 0.5; below hypot(0.3, 0.5) = 0.5831, above hypot(0.4, 0.5) = 0.6403.
  CHECK(point.low.us() == test::approx(1000 * (1 - 0.583095)));
  CHECK(point.high.us() == test::approx(1000 * (1 + 0.640312)));
  CHECK(fit::with_band(forecast(0, 2, 0, 0), {0, 0}).low.ps == 0);
}

TEST_CASE("without further counts, training steps extrapolate better than messages, replicas worse than models") {
  const auto loaded = load_scenario(FABRICAST_SOURCE_DIR "/scenarios/allreduce-dgx-a100-pair.yaml");
  REQUIRE(loaded);
  const fit::Experiment messages{.loaded = *loaded};
  const auto steps = [&](DataParallelism data) {
    auto one = messages;
    auto training = std::make_shared<TrainingSpec>();
    training->parallel.data = data;
    one.loaded.scenario.workloads.front().training = training;
    return one;
  };
  const auto replicas = steps(DataParallelism::ddp);
  const auto parts = steps(DataParallelism::fsdp);
  CHECK(fit::usual_extrapolation({parts}) == test::approx(0.008));
  CHECK(fit::usual_extrapolation({replicas}) == test::approx(0.04));
  CHECK(fit::usual_extrapolation({steps(DataParallelism::horovod)}) == test::approx(0.04));
  CHECK(fit::usual_extrapolation({parts, replicas, parts}) == test::approx(0.04));
  CHECK(fit::usual_extrapolation({parts, messages}) == test::approx(0.08));
}
