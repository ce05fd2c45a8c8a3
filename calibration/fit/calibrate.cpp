// SPDX-License-Identifier: Apache-2.0
// calibrate(): load, fit, judge, leave out, set the band from the errors of points the fit did not see.
#include "fabricast/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/assert.hpp"
#include "fabricast/inputs.hpp"
#include "fit/errors.hpp"
#include "fit/fittable.hpp"
#include "fit/leave_out.hpp"
#include "fit/record.hpp"
#include "fit/report_points.hpp"

namespace fabricast {

namespace fit {

namespace {

constexpr double k_least_extrapolation = 0.02;  ///< relative error per doubling of ranks or hosts, at least
constexpr double k_unknown_extrapolation = 1;   ///< where nobody looked: more than any band without a fit
constexpr double k_share_of_fit = 0.5;          ///< of the work, for progress
constexpr double k_odd_log = 3;                 ///< times the median error of all logs, with which a log stands out
constexpr double k_least_odd_error = 0.15;

bool is_fitted_point(const Experiment& experiment, std::size_t row) { return experiment.is_fitted[row]; }

class Calibrator {
 public:
  Calibrator(Dataset& data, const Calibration& calibration, const CalibrateOptions& options)
      : data_(data),
        calibration_(calibration),
        options_(options),
        fitter_(data, calibration, [this] { return may_go_on(); }) {}

  Result<CalibrationReport> run() {
    report_.name = calibration_.name;
    report_.warnings = data_.warnings();
    // What the fit rests on goes along with it.
    for (const auto& file : calibration_.parameter_files) {
      if (const auto before = load_parameters(file)) report_.fitted.merge(before->parameters);
    }
    result_ = fitter_.fit(is_fitted_point);
    refuse_worse();
    if (auto faults = unforecast_logs(); !faults.empty()) return tl::unexpected(std::move(faults));
    if (calibration_.intervals == IntervalMethod::bootstrap && !is_stopped())
      result_.deviation = fitter_.bootstrap(result_, calibration_.bootstrap_samples);
    set_parameters();
    set_logs();
    leave_out();
    report_.fitted.merge(record_of_logs(data_, result_));
    set_band();
    set_errors();
    set_points();
    report_.evaluations = data_.evaluations();
    report_.is_interrupted = is_stopped();
    done(1);
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool is_stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  void done(double share) {
    share_ = std::max(share_, share);
    if (options_.progress) options_.progress(share_);
  }
  /// Called before each step of the solver; the number of steps to come is not known.
  bool may_go_on() {
    const double until = share_ < k_share_of_fit ? k_share_of_fit : 0.95;
    done(share_ + (until - share_) / 100);
    return !is_stopped();
  }

  [[nodiscard]] Diagnostics unforecast_logs() const;
  void set_parameters();
  void set_logs();
  void leave_out();
  void set_range();
  void set_band();
  void set_errors();
  void set_points();
  void judge_logs();
  void refuse_worse();
  [[nodiscard]] std::vector<CalibrationPoint> points_before(std::size_t e);
  [[nodiscard]] ErrorClass left_out_class(const std::string& name, const std::vector<Forecast>& forecasts) const;
  [[nodiscard]] Band band_without(const Chosen& is_judged) const;
  [[nodiscard]] double share_inside(const Band& band) const;
  [[nodiscard]] std::string growth_source() const;

  Dataset& data_;
  const Calibration& calibration_;
  const CalibrateOptions& options_;
  Fitter fitter_;
  FitResult result_;
  CalibrationReport report_;
  double share_ = 0;
  std::vector<Forecast> sizes_, logs_, steps_;  ///< fitted points predicted without themselves
  std::vector<CountLeftOut> counts_;
  std::vector<Forecast> setting_;   ///< what the band is set on: sizes_ and logs_
  bool is_refused_ = false;         ///< the fit would have been worse on its own logs
  bool is_unknown_growth_ = false;  ///< the logs have larger counts, but they were not forecast from smaller ones
};

/// No step of the fit goes where a fitted point cannot be forecast; a log that is held out may be lost all the same.
Diagnostics Calibrator::unforecast_logs() const {
  Diagnostics faults;
  for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
    const auto& experiment = data_.experiments()[e];
    if (data_.predict_table(e, result_.x, {}, false)) continue;
    faults.push_back(make_error_at(experiment.spec.location,
                                   fmt::format("the fitted values make no forecast of '{}'", experiment.name),
                                   "keep the parameters nearer to their start by 'low' and 'high', or remove the log"));
  }
  return faults;
}

/// Half of the fitted points may be further off than before only within the noise: else their starts stay. A loss that
/// noise makes quadratic follows rows that are off themselves.
void Calibrator::refuse_worse() {
  if (is_stopped() || result_.free_indices.empty()) return;
  const auto median_at = [&](const Values& x) {
    std::vector<double> errors;
    for (const auto& point : result_.points)
      errors.push_back(std::abs(std::expm1(residuals_of(data_, point.experiment, x)[point.row])));
    return percentile(std::move(errors), 0.5);
  };
  const double before = median_at(starts_of(data_));
  const double after = median_at(result_.x);
  if (after <= std::max(before, calibration_.noise)) return;
  report_.warnings.push_back(make_warning_at(
      {calibration_.file, 0, 0},
      fmt::format(
          "the fit is worse on its own points ({:.1f} % off in the median, {:.1f} % before it): all parameters "
          "keep their start, only the band is set; rows far from the others, or a 'noise' above theirs, do this",
          100 * after, 100 * before)));
  result_ = fitter_.refused(result_, is_fitted_point);
  is_refused_ = true;
}

/// Points of a log as forecast before the fit.
std::vector<CalibrationPoint> Calibrator::points_before(std::size_t e) {
  const auto& experiment = data_.experiments()[e];
  const auto table = data_.predict_table(e, starts_of(data_), intervals_before(data_));
  return table ? points_of(e, experiment, *table) : std::vector<CalibrationPoint>();
}

void Calibrator::set_parameters() {
  std::vector<std::string> files;
  for (const auto& point : result_.points) files.push_back(data_.experiments()[point.experiment].spec.file);
  const auto source = fit_source(calibration_.name, result_.points.size(), files);
  for (std::size_t i = 0; i < data_.parameters().size(); ++i) {
    const auto& free = data_.parameters()[i];
    FittedParameter fitted;
    fitted.parameter = free.parameter;
    fitted.start = free.parameter.value;
    fitted.prior_deviation = free.prior_deviation;
    fitted.deviation = result_.deviation[i];
    // What a limit hides where the fit ends is undetermined, not unused: forecasts move with it from elsewhere.
    const bool is_used = std::ranges::any_of(data_.experiments(), [&](const Experiment& one) {
      return std::find(one.uses.begin(), one.uses.end(), static_cast<int>(i)) != one.uses.end();
    });
    if (!result_.is_free[i] && !is_used) {
      fitted.determination = Determination::unused;
    } else if (!result_.is_free[i]) {
      fitted.determination = Determination::undetermined;
      // A start of the calibration file's own must go along: forecasts would take the shipped value otherwise.
      if (free.has_own_start) report_.fitted.set(free.parameter);
    } else {
      auto& p = fitted.parameter;
      p.value = std::exp(result_.x[i]);
      set_interval(fitted.deviation, p);
      p.confidence = Confidence::fitted;
      p.source = source;
      const double slack = 1e-6;
      if (result_.x[i] <= std::log(free.low) + slack || result_.x[i] >= std::log(free.high) - slack)
        fitted.determination = Determination::at_bound;
      report_.fitted.set(p);
      report_.fitted.set(record_of_value(free.parameter, p.value));
    }
    if (result_.entangled[i] >= 0)
      fitted.entangled_with = data_.parameters()[static_cast<std::size_t>(result_.entangled[i])].parameter.name;
    report_.parameters.push_back(std::move(fitted));
  }
  if (result_.free_indices.empty() && !is_stopped() && !is_refused_)
    report_.warnings.push_back(
        make_warning_at({calibration_.file, 0, 0},
                        fmt::format("these {} points say less of every parameter than is known already: all keep their "
                                    "start, only the band is set",
                                    result_.points.size())));
}

void Calibrator::set_logs() {
  std::vector<double> floors;
  for (const auto& experiment : data_.experiments()) {
    CalibrationLogReport log;
    log.file = experiment.spec.file;
    log.name = experiment.name;
    log.num_ranks = experiment.num_ranks;
    log.num_hosts = experiment.num_hosts;
    log.is_held_out = experiment.spec.is_held_out;
    const auto e = report_.logs.size();
    log.noise_floor = noise_floor(residuals_of(data_, e, result_.x));
    log.error_before = error_class("", points_before(e)).summary.median_abs_error;
    log.error_without = -1;
    if (log.noise_floor > 0) floors.push_back(log.noise_floor);  // 0 = too few sizes to tell
    report_.logs.push_back(std::move(log));
  }
  report_.noise_floor = percentile(floors, 0.5);
}

void Calibrator::leave_out() {
  LeaveOut without(data_, fitter_, result_);
  if (!is_stopped()) sizes_ = without.sizes();
  done(0.6);
  if (!is_stopped()) logs_ = without.logs();
  done(0.7);
  if (options_.with_leave_out) {
    if (!is_stopped()) counts_ = without.counts();
    done(0.9);
    if (!is_stopped()) steps_ = without.steps();
  }
  is_unknown_growth_ = steps_.empty() && (!options_.with_leave_out || is_stopped()) && without.has_steps();
  setting_ = sizes_;
  setting_.insert(setting_.end(), logs_.begin(), logs_.end());
  if (setting_.empty()) {
    for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
      for (auto& forecast : without.forecasts(e, result_.x)) {
        if (forecast.point.is_fitted) setting_.push_back(std::move(forecast));
      }
    }
  }
}

/// The band that points other than the judged ones set.
Band Calibrator::band_without(const Chosen& is_judged) const {
  Band band;
  band.model_error = model_error_of(setting_, calibration_.noise, [&](const Forecast& one) { return !is_judged(one); });
  const double further =
      extrapolation_error_of(steps_, band.model_error, [&](const Forecast& one) { return !is_judged(one); });
  band.extrapolation_error =
      further < 0 ? usual_extrapolation(data_.experiments()) : std::max(k_least_extrapolation, further);
  if (is_unknown_growth_) band.extrapolation_error = k_unknown_extrapolation;
  return band;
}

void Calibrator::set_band() {
  const auto band = band_without([](const Forecast&) { return false; });
  report_.model_error = band.model_error;
  report_.extrapolation = band.extrapolation_error;
  report_.num_band_points = static_cast<int>(sizes_.size() + logs_.size());
  const auto add = [&](const char* name, double value, std::string source) {
    report_.fitted.set({name, value, Dimension::number, value, value, Confidence::fitted, std::move(source), {}});
  };
  const auto judged = fmt::format("{} points {}", setting_.size(),
                                  report_.num_band_points > 0 ? "left out of the fit" : "of the fit itself");
  add("model.fitted_error", band.model_error,
      band.model_error > calibration_.noise
          ? fmt::format("half width that holds 80 % of {}", judged)
          : fmt::format("the noise that the calibration states; the band holds {:.0f} % of {}",
                        100 * share_inside(band), judged));
  add("model.extrapolation_error", band.extrapolation_error, growth_source());
}

double Calibrator::share_inside(const Band& band) const {
  const auto is_inside = [&](const Forecast& one) {
    const auto point = with_band({one.experiment, one.point, one.below, one.above}, band);
    return point.low <= point.measured && point.measured <= point.high;
  };
  const auto inside = std::ranges::count_if(setting_, is_inside);
  return setting_.empty() ? 0 : static_cast<double>(inside) / static_cast<double>(setting_.size());
}

std::string Calibrator::growth_source() const {
  if (is_unknown_growth_)
    return fmt::format(
        "larger counts were not forecast from smaller ones ({}): beyond the counts of the logs the band is "
        "that of no fit",
        options_.with_leave_out ? "interrupted" : "--quick");
  if (steps_.empty())
    return "usual value; the logs have no larger count of ranks or hosts to forecast from a smaller one, one host and "
           "several apart";
  return fmt::format("half width per doubling that holds 80 % of {} points of larger counts than their fit saw",
                     steps_.size());
}

/// Coverage of points that did not set their band: each log, or count, is judged by the band of the others.
ErrorClass Calibrator::left_out_class(const std::string& name, const std::vector<Forecast>& forecasts) const {
  std::map<std::size_t, Band> bands;
  std::vector<CalibrationPoint> points;
  for (const auto& forecast : forecasts) {
    const auto e = forecast.experiment;
    const auto count = std::pair(data_.experiments()[e].num_ranks, data_.experiments()[e].num_hosts);
    if (!bands.contains(e)) {
      bands[e] = band_without([&](const Forecast& one) {
        const auto& other = data_.experiments()[one.experiment];
        // A count that was left out is judged without all its logs.
        const bool is_same_count = forecast.doublings > 0 && std::pair(other.num_ranks, other.num_hosts) == count;
        return one.experiment == e || is_same_count;
      });
    }
    points.push_back(with_band(forecast, bands.at(e)));
  }
  return error_class(name, points);
}

void Calibrator::set_errors() {
  if (!sizes_.empty()) report_.errors.push_back(left_out_class("leave out sizes", sizes_));
  if (!logs_.empty()) report_.errors.push_back(left_out_class("leave one log out", logs_));
  for (const auto& count : counts_) report_.errors.push_back(left_out_class(count.name, count.forecasts));
  if (!steps_.empty()) report_.errors.push_back(left_out_class("next larger count", steps_));
  for (std::size_t e = 0; e < report_.logs.size(); ++e) {
    std::vector<double> errors;
    for (const auto& one : logs_) {
      if (one.experiment == e) errors.push_back(std::abs(one.point.relative_error));
    }
    if (!errors.empty()) report_.logs[e].error_without = percentile(errors, 0.5);
  }
}

void Calibrator::set_points() {
  std::vector<CalibrationPoint> before, in_sample, held_sizes, held_logs;
  auto parameters = intervals_at(data_, result_, result_.x);
  parameters.merge(report_.fitted);
  for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
    const auto& experiment = data_.experiments()[e];
    const auto forecast = table_with_band(data_, e, result_.x, parameters);
    FABRICAST_ASSERT(forecast.has_value(), "the fitted values of '{}' make no forecast", experiment.name);
    const auto& table = *forecast;
    auto points = points_of(e, experiment, table);
    for (auto& point : points_before(e)) {
      if (point.is_fitted) before.push_back(std::move(point));
    }
    mark_outliers(points, std::max(0.12, 4 * report_.logs[e].noise_floor));
    const auto changes = regime_changes(points, std::max(0.12, 3 * report_.logs[e].noise_floor));
    report_.regimes.insert(report_.regimes.end(), changes.begin(), changes.end());
    add_choices(e, compare_choices(table, experiment.choices), report_.regimes);
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
  errors.push_back(error_class("before the fit", before));
  report_.errors = std::move(errors);
  judge_logs();
}

/// A log that the others do not explain: another setting than its scenario says, or a bad run.
void Calibrator::judge_logs() {
  std::vector<double> all;
  for (const auto& log : report_.logs) {
    if (log.error_without >= 0) all.push_back(log.error_without);
  }
  const double limit = std::max(k_least_odd_error, k_odd_log * percentile(all, 0.5));
  for (auto& log : report_.logs) log.is_odd = all.size() > 3 && log.error_without > limit;
}

}  // namespace

}  // namespace fit

Diagnostics check_calibration(const Calibration& calibration) { return fit::Dataset::check(calibration); }

Result<CalibrationReport> calibrate(const Calibration& calibration, const CalibrateOptions& options) {
  auto data = fit::Dataset::load(calibration);
  if (!data) return tl::unexpected(data.error());
  if (auto faults = fit::faults_of_fit(*data, calibration); !faults.empty()) return tl::unexpected(std::move(faults));
  auto report = fit::Calibrator(*data, calibration, options).run();
  if (!report) return report;
  for (const auto& path : input_files(calibration)) note_file(report->inputs, path);  // optional logs may be absent
  return report;
}

}  // namespace fabricast
