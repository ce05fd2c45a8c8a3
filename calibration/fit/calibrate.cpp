// SPDX-License-Identifier: Apache-2.0
// calibrate(): load, fit, judge, leave out, set the band from the errors of points the fit did not see.
#include "fabricast/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/assert.hpp"
#include "fabricast/inputs.hpp"
#include "fabricast/scatter.hpp"
#include "fit/errors.hpp"
#include "fit/fittable.hpp"
#include "fit/leave_out.hpp"

namespace fabricast {

namespace fit {

namespace {

constexpr double k_least_extrapolation = 0.02;  ///< relative error per doubling of ranks or hosts, at least
constexpr double k_share_of_fit = 0.5;          ///< of the work, for progress
constexpr double k_odd_log = 3;                 ///< times the median error of all logs, with which a log stands out
constexpr double k_least_odd_error = 0.15;

std::string stem_of(const std::string& file) { return std::filesystem::path(file).stem().string(); }

/// One point of the final table.
CalibrationPoint point_of(std::size_t e, const Experiment& experiment, std::size_t i, const Row& row) {
  CalibrationPoint point;
  point.log = e;
  point.size = experiment.sizes[i];
  point.measured = from_seconds(experiment.seconds[i]);
  point.predicted = row.time;
  point.low = row.low_time;
  point.high = row.high_time;
  point.relative_error = row.time.seconds() / experiment.seconds[i] - 1;
  point.is_fitted = experiment.is_fitted[i];
  point.is_extrapolated = row.is_extrapolated;
  point.regime = row.channels > 0 ? fmt::format("{} {} {} channels", row.algorithm, row.protocol, row.channels)
                                  : fmt::format("{} {}", row.algorithm, row.protocol);
  return point;
}

/// Sizes at which NCCL says that it chose otherwise.
void add_choices(std::size_t e, const std::vector<ChoicePoint>& choices, std::vector<RegimeChange>& regimes) {
  for (const auto& choice : choices) {
    if (choice.agrees() && choice.channels_agree()) continue;
    regimes.push_back({e, choice.size, 0,
                       fmt::format("NCCL says it used {} {} {} channels, the model {} {} {} channels",
                                   choice.logged_algorithm, choice.logged_protocol, choice.logged_channels,
                                   choice.predicted_algorithm, choice.predicted_protocol, choice.predicted_channels)});
  }
}

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
    result_ = fitter_.fit([](const Experiment& e, std::size_t row) { return e.is_fitted[row]; });
    if (auto faults = unforecast_logs(); !faults.empty()) return tl::unexpected(std::move(faults));
    if (calibration_.intervals == IntervalMethod::bootstrap && !is_stopped())
      result_.deviation = fitter_.bootstrap(result_, calibration_.bootstrap_samples);
    set_parameters();
    set_logs();
    leave_out();
    set_range();
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
  [[nodiscard]] std::string fit_source() const;
  [[nodiscard]] ErrorClass left_out_class(const std::string& name, const std::vector<Forecast>& forecasts) const;
  [[nodiscard]] Band band_without(const Chosen& is_judged) const;

  Dataset& data_;
  const Calibration& calibration_;
  const CalibrateOptions& options_;
  Fitter fitter_;
  FitResult result_;
  CalibrationReport report_;
  double share_ = 0;
  std::vector<Forecast> sizes_, logs_, steps_;  ///< fitted points predicted without themselves
  std::vector<CountLeftOut> counts_;
  std::vector<Forecast> setting_;  ///< what the band is set on: sizes_ and logs_
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
    }
    if (result_.entangled[i] >= 0)
      fitted.entangled_with = data_.parameters()[static_cast<std::size_t>(result_.entangled[i])].parameter.name;
    report_.parameters.push_back(std::move(fitted));
  }
  if (result_.free_indices.empty() && !is_stopped())
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
    log.noise_floor = noise_floor(experiment.sizes, experiment.seconds);
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

/// The range the parameters were fitted on, as parameters of the model, so that forecasts know when they leave it.
void Calibrator::set_range() {
  double low = 1e300;
  double high = 0;
  int ranks = 0;
  int hosts = 0;
  std::set<std::string_view> kinds;
  for (const auto& point : result_.points) {
    const auto& experiment = data_.experiments()[point.experiment];
    const auto benchmark = experiment.loaded.scenario.workloads.front().benchmark;
    if (benchmark != Benchmark::training) {
      low = std::min(low, static_cast<double>(experiment.sizes[point.row].value));
      high = std::max(high, static_cast<double>(experiment.sizes[point.row].value));
    }
    ranks = std::max(ranks, experiment.num_ranks);
    hosts = std::max(hosts, experiment.num_hosts);
    // A step of one GPU has no exchange to learn from.
    if (benchmark != Benchmark::training || experiment.num_ranks > 1)
      kinds.insert(between_systems_name(benchmark, experiment.num_hosts));
  }
  const auto add = [&](std::string_view name, double value, Dimension dimension, const char* what) {
    report_.fitted.set({std::string(name), value, dimension, value, value, Confidence::fitted, what, {}});
  };
  kinds.erase("");
  for (const auto kind : kinds) add(kind, 0, Dimension::number, "this system is fitted");
  if (high > 0) {
    add("model.fitted_size_low", low, Dimension::bytes, "smallest size fitted");
    add("model.fitted_size_high", high, Dimension::bytes, "largest size fitted");
  }
  add("model.fitted_ranks", ranks, Dimension::number, "largest number of ranks fitted");
  add("model.fitted_hosts", hosts, Dimension::number, "largest number of hosts fitted");
}

/// The band that points other than the judged ones set.
Band Calibrator::band_without(const Chosen& is_judged) const {
  Band band;
  band.model_error =
      model_error_of(setting_, report_.noise_floor, [&](const Forecast& one) { return !is_judged(one); });
  const double further =
      extrapolation_error_of(steps_, band.model_error, [&](const Forecast& one) { return !is_judged(one); });
  band.extrapolation_error =
      further < 0 ? usual_extrapolation(data_.experiments()) : std::max(k_least_extrapolation, further);
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
  add("model.relative_error", band.model_error,
      fmt::format("half width that holds 80 % of {} points {}", setting_.size(),
                  report_.num_band_points > 0 ? "left out of the fit" : "of the fit itself"));
  add("model.extrapolation_error", band.extrapolation_error,
      steps_.empty()
          ? "usual value; the logs have no larger count to forecast from a smaller one"
          : fmt::format("half width per doubling that holds 80 % of {} points of larger counts than their fit saw",
                        steps_.size()));
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
  std::vector<CalibrationPoint> in_sample, held_sizes, held_logs;
  auto parameters = intervals_at(data_, result_, result_.x);
  parameters.merge(report_.fitted);
  for (std::size_t e = 0; e < data_.experiments().size(); ++e) {
    const auto& experiment = data_.experiments()[e];
    const auto forecast = table_with_band(data_, e, result_.x, parameters);
    FABRICAST_ASSERT(forecast.has_value(), "the fitted values of '{}' make no forecast", experiment.name);
    const auto& table = *forecast;
    std::vector<CalibrationPoint> points;
    for (std::size_t i = 0; i < table.rows.size(); ++i) points.push_back(point_of(e, experiment, i, table.rows[i]));
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
