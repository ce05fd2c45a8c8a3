// SPDX-License-Identifier: Apache-2.0
#include "fit/band.hpp"

#include <algorithm>
#include <cmath>

#include "fabricast/training.hpp"
#include "fit/dataset.hpp"

namespace fabricast::fit {

namespace {

constexpr double k_share_inside = 0.8;

/// Square of what is missing on the measured side beyond the parameters' intervals, relative to the prediction.
double missing_squared(const Forecast& forecast) {
  const double error = forecast.point.relative_error;
  const double distance = error / (1 + error);  // (predicted - measured) / predicted
  return distance * distance - std::pow(distance > 0 ? forecast.below : forecast.above, 2);
}

double width_that_holds_most(std::vector<double> needed) { return percentile(std::move(needed), k_share_inside); }

}  // namespace

double model_error_of(const std::vector<Forecast>& forecasts, double floor, const Chosen& chosen) {
  std::vector<double> needed;
  for (const auto& forecast : forecasts) {
    if (!chosen || chosen(forecast)) needed.push_back(std::sqrt(std::max(0.0, missing_squared(forecast))));
  }
  return std::max(width_that_holds_most(std::move(needed)), floor);
}

double extrapolation_error_of(const std::vector<Forecast>& forecasts, double model_error, const Chosen& chosen) {
  std::vector<double> needed;
  for (const auto& forecast : forecasts) {
    if ((chosen && !chosen(forecast)) || forecast.doublings <= 0) continue;
    const double further = missing_squared(forecast) - model_error * model_error;
    needed.push_back(std::sqrt(std::max(0.0, further)) / std::max(1.0, forecast.doublings));
  }
  return needed.empty() ? -1 : width_that_holds_most(std::move(needed));
}

CalibrationPoint with_band(const Forecast& forecast, const Band& band) {
  auto point = forecast.point;
  const auto own = [&](double wide) {
    if (forecast.is_foreign) return wide;
    const double further = std::hypot(band.model_error, band.extrapolation_error * forecast.doublings);
    return std::min(further, std::max(band.model_error, wide));
  };
  const double time = point.predicted.seconds();
  point.low = from_seconds(std::max(0.0, time * (1 - std::hypot(forecast.below, own(forecast.wide_below)))));
  point.high = from_seconds(time * (1 + std::hypot(forecast.above, own(forecast.wide_above))));
  return point;
}

namespace {

constexpr double k_usual_extrapolation = 0.08;  ///< when the logs have one count only
/// The same of training steps, of which the intervals of parameters hold most: language models 0 to 0.8 %, data
/// parallelism of images, whose inputs and hosts are not modelled, 2 to 8 % (docs/VALIDATION.md, Training steps).
constexpr double k_usual_extrapolation_of_models = 0.008;
constexpr double k_usual_extrapolation_of_replicas = 0.04;

}  // namespace

double usual_extrapolation(const std::vector<Experiment>& experiments) {
  double most = 0;
  for (const auto& one : experiments) {
    const auto& training = one.loaded.scenario.workloads.front().training;
    if (training == nullptr) return k_usual_extrapolation;
    const auto data = training->parallel.data;
    const bool is_replica = data == DataParallelism::ddp || data == DataParallelism::horovod;
    most = std::max(most, is_replica ? k_usual_extrapolation_of_replicas : k_usual_extrapolation_of_models);
  }
  return most;
}

}  // namespace fabricast::fit
