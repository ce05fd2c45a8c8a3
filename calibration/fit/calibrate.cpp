// SPDX-License-Identifier: Apache-2.0
// calibrate(): load, fit, judge, leave out, set the band from the errors of points the fit did not see.
#include "fabricast/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "fit/errors.hpp"
#include "fit/fit.hpp"

namespace fabricast {

std::string_view to_string(Determination determination) {
  switch (determination) {
    case Determination::determined:
      return "determined";
    case Determination::undetermined:
      return "undetermined";
    case Determination::unused:
      return "unused";
    case Determination::at_bound:
      return "at bound";
  }
  return "";
}

namespace fit {

namespace {

constexpr double k_eighty = 1.2816;             ///< deviations each side of an 80 % interval
constexpr double k_least_extrapolation = 0.02;  ///< relative error per doubling of ranks or hosts, at least
constexpr double k_usual_extrapolation = 0.08;  ///< when the logs have one count only
constexpr int k_refit_iterations = 6;

std::string stem_of(const std::string& file) { return std::filesystem::path(file).stem().string(); }

class Calibrator {
 public:
  Calibrator(Dataset& data, const Calibration& calibration, const CalibrateOptions& options)
      : data_(data), calibration_(calibration), options_(options), fitter_(data, calibration) {}

  CalibrationReport run() {
    report_.name = calibration_.name;
    report_.warnings = data_.warnings();
    // What the fit rests on goes along with it.
    for (const auto& file : calibration_.parameter_files) {
      if (const auto before = load_parameters(file)) report_.fitted.merge(*before);
    }
    result_ = fitter_.fit([](const Experiment& e, std::size_t row) { return e.is_fitted[row]; });
    if (calibration_.intervals == IntervalMethod::bootstrap)
      result_.deviation = fitter_.bootstrap(result_, calibration_.bootstrap_samples);
    done(0.4);
    set_parameters();
    set_logs();
    leave_out();
    set_range();
    set_band();
    set_points();
    report_.evaluations = data_.evaluations();
    done(1);
    return std::move(report_);
  }

 private:
  void done(double share) const {
    if (options_.progress) options_.progress(share);
  }

  void set_parameters();
  void set_logs();
  void leave_out();
  void leave_out_counts(const char* what, int Experiment::*count);
  void set_range();
  void set_band();
  void set_points();
  [[nodiscard]] std::string fit_source() const;
  std::vector<CalibrationPoint> points_of(std::size_t experiment, const Values& x);

  Dataset& data_;
  const Calibration& calibration_;
  const CalibrateOptions& options_;
  Fitter fitter_;
  FitResult result_;
  CalibrationReport report_;
  std::vector<std::pair<std::size_t, CalibrationPoint>> unseen_;  ///< experiment, point predicted without it
  double extrapolated_error_ = -1;  ///< 80th percentile of the errors per doubling beyond the counts fitted
};

std::string Calibrator::fit_source() const {
  std::set<std::string> names;
  for (const auto& point : result_.points) names.insert(stem_of(data_.experiments()[point.experiment].spec.file));
  std::string list;
  std::size_t shown = 0;
  for (const auto& name : names) {
    if (shown++ == 3) {
      list += fmt::format(" and {} more", names.size() - 3);
      break;
    }
    list += (list.empty() ? "" : ", ") + name;
  }
  return fmt::format("fit '{}' to {} points of {} logs ({})", calibration_.name, result_.points.size(), names.size(),
                     list);
}

void Calibrator::set_parameters() {
  const auto source = fit_source();
  for (std::size_t i = 0; i < data_.parameters().size(); ++i) {
    const auto& free = data_.parameters()[i];
    FittedParameter fitted;
    fitted.parameter = free.parameter;
    fitted.start = free.parameter.value;
    fitted.prior_deviation = free.prior_deviation;
    fitted.deviation = result_.deviation[i];
    const bool was_tried = result_.is_free[i] || result_.data_deviation_ratio[i] != 1;
    if (!was_tried) {
      fitted.determination = Determination::unused;
    } else if (!result_.is_free[i]) {
      fitted.determination = Determination::undetermined;
    } else {
      auto& p = fitted.parameter;
      p.value = std::exp(result_.x[i]);
      p.low = p.value * std::exp(-k_eighty * fitted.deviation);
      p.high = p.value * std::exp(k_eighty * fitted.deviation);
      p.confidence = Confidence::fitted;
      p.source = source;
      const double slack = 1e-6;
      if (result_.x[i] <= std::log(free.low) + slack || result_.x[i] >= std::log(free.high) - slack)
        fitted.determination = Determination::at_bound;
      report_.fitted.set(p);
    }
    if (result_.entangled[i] >= 0)
      fitted.entangled_with = data_.parameters()[static_cast<std::size_t>(result_.entangled[i])].parameter.name;
    report_.parameters.push_back(std::move(fitted));
  }
}

void Calibrator::set_logs() {
  std::vector<double> floors;
  for (const auto& experiment : data_.experiments()) {
    CalibrationLogReport log;
    log.file = experiment.spec.file;
    log.name = stem_of(log.file);
    log.num_ranks = experiment.num_ranks;
    log.num_hosts = experiment.num_hosts;
    log.is_held_out = experiment.spec.is_held_out;
    log.noise_floor = noise_floor(experiment.sizes, experiment.seconds);
    log.error_without = -1;
    floors.push_back(log.noise_floor);
    report_.logs.push_back(std::move(log));
  }
  report_.noise_floor = percentile(floors, 0.5);
}

std::vector<CalibrationPoint> Calibrator::points_of(std::size_t e, const Values& x) {
  const auto& experiment = data_.experiments()[e];
  const auto& seconds = data_.predict(e, x);
  std::vector<CalibrationPoint> points;
  for (std::size_t row = 0; row < experiment.sizes.size(); ++row) {
    CalibrationPoint point;
    point.log = e;
    point.size = experiment.sizes[row];
    point.measured = from_seconds(experiment.seconds[row]);
    point.predicted = from_seconds(seconds[row]);
    point.relative_error = seconds[row] / experiment.seconds[row] - 1;
    point.is_fitted = experiment.is_fitted[row];
    points.push_back(std::move(point));
  }
  return points;
}

void Calibrator::leave_out() {
  std::size_t num_fitted = 0;
  for (const auto& experiment : data_.experiments()) num_fitted += experiment.spec.is_held_out ? 0 : 1;
  for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
    for (const auto& point : points_of(e, result_.x)) {
      if (!point.is_fitted) unseen_.emplace_back(e, point);
    }
  }
  if (!options_.with_leave_out || num_fitted < 2) return;
  std::vector<CalibrationPoint> all;
  for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
    if (data_.experiments()[e].spec.is_held_out) continue;
    const auto points = points_of(e, fitter_.without_experiment(result_, e));
    std::vector<double> errors;
    for (const auto& point : points) {
      errors.push_back(std::abs(point.relative_error));
      all.push_back(point);
      if (point.is_fitted) unseen_.emplace_back(e, point);
    }
    report_.logs[e].error_without = percentile(errors, 0.5);
  }
  report_.errors.push_back(error_class("leave one log out", all));
  done(0.6);
  leave_out_counts("ranks", &Experiment::num_ranks);
  leave_out_counts("hosts", &Experiment::num_hosts);
}

/// Fits again without all logs of each count and forecasts them.
void Calibrator::leave_out_counts(const char* what, int Experiment::*count) {
  std::set<int> counts;
  for (const auto& experiment : data_.experiments()) {
    if (!experiment.spec.is_held_out) counts.insert(experiment.*count);
  }
  if (counts.size() < 2) return;
  for (const int left_out : counts) {
    const auto without = fitter_.refit(
        result_, [&](const Experiment& e, std::size_t row) { return e.is_fitted[row] && e.*count != left_out; },
        k_refit_iterations);
    std::vector<CalibrationPoint> points;
    std::vector<double> errors;
    for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
      if (data_.experiments()[e].*count != left_out || data_.experiments()[e].spec.is_held_out) continue;
      for (auto& point : points_of(e, without.x)) {
        errors.push_back(std::abs(point.relative_error));
        points.push_back(std::move(point));
      }
    }
    report_.errors.push_back(error_class(fmt::format("leave out {} {}", left_out, what), points));
    // Beyond the largest count that was left: what an extrapolation costs per doubling.
    if (left_out != *counts.rbegin()) continue;
    const double doublings = std::log2(static_cast<double>(left_out) / *std::next(counts.rbegin()));
    extrapolated_error_ = std::max(extrapolated_error_, percentile(errors, 0.8) / std::max(1.0, doublings));
  }
}

/// The range the parameters were fitted on, as parameters of the model, so that forecasts know when they leave it.
void Calibrator::set_range() {
  double low = 1e300;
  double high = 0;
  int ranks = 0;
  int hosts = 0;
  for (const auto& point : result_.points) {
    const auto& experiment = data_.experiments()[point.experiment];
    low = std::min(low, static_cast<double>(experiment.sizes[point.row].value));
    high = std::max(high, static_cast<double>(experiment.sizes[point.row].value));
    ranks = std::max(ranks, experiment.num_ranks);
    hosts = std::max(hosts, experiment.num_hosts);
  }
  const auto add = [&](const char* name, double value, Dimension dimension, const char* what) {
    report_.fitted.set({name, value, dimension, value, value, Confidence::fitted, what, {}});
  };
  add("model.fitted_size_low", low, Dimension::bytes, "smallest size fitted");
  add("model.fitted_size_high", high, Dimension::bytes, "largest size fitted");
  add("model.fitted_ranks", ranks, Dimension::number, "largest number of ranks fitted");
  add("model.fitted_hosts", hosts, Dimension::number, "largest number of hosts fitted");
}

/// model.relative_error such that the 80 % band holds 80 % of the points that the fit did not see.
void Calibrator::set_band() {
  ParameterSet extra = report_.fitted;
  extra.set({"model.relative_error", 0, Dimension::number, 0, 0, Confidence::fitted, "", {}});
  const auto add_point = [&](std::size_t e, double error, double time, const Row& row, std::vector<double>& needed) {
    // The half width that parameters give already, on the measured side.
    const double half = error > 0 ? time - row.low_time.seconds() : row.high_time.seconds() - time;
    const double missing = std::pow(error / (1 + error), 2) - std::pow(half / time, 2);
    needed.push_back(std::sqrt(std::max(0.0, missing)));
    static_cast<void>(e);
  };
  if (unseen_.empty()) {
    for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
      for (const auto& point : points_of(e, result_.x)) unseen_.emplace_back(e, point);
    }
  }
  std::vector<double> needed;
  for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
    const auto table = data_.predict_table(e, result_.x, extra);
    std::map<Bytes, const Row*> rows;
    for (const auto& row : table.rows) rows[row.size] = &row;
    for (const auto& [experiment, point] : unseen_) {
      if (experiment != e) continue;
      const auto* row = rows.at(point.size);
      add_point(e, point.relative_error, row->time.seconds(), *row, needed);
    }
  }
  report_.model_error = std::max(percentile(needed, 0.8), report_.noise_floor);
  report_.fitted.set({"model.relative_error",
                      report_.model_error,
                      Dimension::number,
                      report_.model_error,
                      report_.model_error,
                      Confidence::fitted,
                      fmt::format("half width that holds 80 % of {} points the fit did not see", needed.size()),
                      {}});
  double extrapolation = k_usual_extrapolation;
  if (extrapolated_error_ >= 0) {
    extrapolation = std::sqrt(std::max(0.0, std::pow(extrapolated_error_, 2) - std::pow(report_.model_error, 2)));
    extrapolation = std::max(k_least_extrapolation, extrapolation);
  }
  report_.extrapolation = extrapolation;
  report_.fitted.set({"model.extrapolation_error",
                      extrapolation,
                      Dimension::number,
                      extrapolation,
                      extrapolation,
                      Confidence::fitted,
                      extrapolated_error_ >= 0
                          ? "80th percentile of the errors when the largest count is left out, per doubling"
                          : "usual value; the logs have one count only",
                      {}});
}

void Calibrator::set_points() {
  std::vector<CalibrationPoint> in_sample, held_sizes, held_logs;
  for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
    auto points = points_of(e, result_.x);
    const auto table = data_.predict_table(e, result_.x, report_.fitted);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto& row = table.rows[i];
      points[i].low = row.low_time;
      points[i].high = row.high_time;
      points[i].regime = row.channels > 0 ? fmt::format("{} {} {} channels", row.algorithm, row.protocol, row.channels)
                                          : fmt::format("{} {}", row.algorithm, row.protocol);
    }
    mark_outliers(points, std::max(0.12, 4 * report_.logs[e].noise_floor));
    const auto changes = regime_changes(points, std::max(0.12, 3 * report_.logs[e].noise_floor));
    report_.regimes.insert(report_.regimes.end(), changes.begin(), changes.end());
    report_.logs[e].summary = error_class("", points).summary;
    for (auto& point : points) {
      auto& list = point.is_fitted ? in_sample : (report_.logs[e].is_held_out ? held_logs : held_sizes);
      list.push_back(point);
      report_.points.push_back(std::move(point));
    }
  }
  std::vector<ErrorClass> errors{error_class("in sample", in_sample)};
  if (!held_sizes.empty()) errors.push_back(error_class("held-out sizes", held_sizes));
  if (!held_logs.empty()) errors.push_back(error_class("held-out logs", held_logs));
  errors.insert(errors.end(), report_.errors.begin(), report_.errors.end());
  report_.errors = std::move(errors);
}

}  // namespace

}  // namespace fit

Result<CalibrationReport> calibrate(const Calibration& calibration, const CalibrateOptions& options) {
  auto data = fit::Dataset::load(calibration);
  if (!data) return tl::unexpected(data.error());
  if (data->parameters().empty())
    return tl::unexpected(Diagnostics{make_error("no parameter to fit", "list names under 'fit'")});
  return fit::Calibrator(*data, calibration, options).run();
}

}  // namespace fabricast
