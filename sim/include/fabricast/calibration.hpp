// SPDX-License-Identifier: Apache-2.0
// Fitting parameters to measured logs: what a calibration file says, and what a fit answers. The fit runs simulate()
// with other parameter values and compares times; it knows nothing of GPUs or MPI. Parameters keep their owner (a
// device or a software layer), so that the outcome is an ordinary parameter file for bigger clusters too.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/load.hpp"
#include "fabricast/measurement.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/validation.hpp"

namespace fabricast {

/// One measured log and what it was measured under.
struct CalibrationLog {
  std::string file;
  std::string scenario_file;  ///< or `scenario_text`, a scenario document made from the keys of the entry
  std::string scenario_text;
  std::vector<Setting> settings;  ///< what differs from the scenario file, as with --set
  std::vector<std::string> rows;  ///< of training tables: only rows whose text holds all of these
  bool is_held_out = false;       ///< never fitted, only compared
  bool is_optional = false;       ///< skipped with a warning when the file is absent
  double weight = 1;              ///< counts like this many logs; > 0
  SourceLocation location;
};

/// A parameter to fit, or a pattern with `*` for several. Values not given come from the shipped parameters; a name
/// that is not shipped takes those of the name without its last part (`nccl.base_time.ring.ll` for
/// `nccl.base_time.ring.ll.hopper`).
struct CalibrationParameter {
  std::string pattern;
  std::optional<std::string> start, low, high;  ///< quantities
  std::optional<double> prior;  ///< relative standard deviation; 0 = none; default by the confidence of the value
  SourceLocation location;
};

enum class Loss { squared, soft_l1 };
enum class IntervalMethod { covariance, bootstrap };

/// A calibration file, as the YAML said.
struct Calibration {
  std::string name;
  std::string file;
  std::string description;
  std::vector<CalibrationLog> logs;
  std::vector<CalibrationParameter> parameters;
  std::vector<std::string> parameter_files;  ///< read before the fit, e.g. an earlier fit
  int hold_out_every = 0;                    ///< every n-th size of a log is not fitted; 0 = none
  std::vector<Bytes> hold_out_sizes;
  std::vector<int> hold_out_ranks;  ///< logs with these numbers of ranks are not fitted
  std::vector<int> hold_out_hosts;
  double noise = 0.02;  ///< relative standard deviation of one measured time
  Loss loss = Loss::soft_l1;
  int starts = 1;  ///< further ones are drawn around the first
  IntervalMethod intervals = IntervalMethod::covariance;
  int bootstrap_samples = 40;
};

/// Reads a calibration file (schema fabricast/calibration/1); file names are resolved against its folder.
Result<Calibration> load_calibration(const std::string& path);

/// What the data say of one parameter.
enum class Determination {
  determined,    ///< the data, not the prior, set the value
  undetermined,  ///< the data hardly narrow the prior: kept at its start
  unused,        ///< no prediction depends on it
  at_bound,      ///< the best value lies at a bound of the calibration file
};
std::string_view to_string(Determination determination);

struct FittedParameter {
  Parameter parameter;  ///< fitted value with its 80 % interval
  double start = 0;
  double prior_deviation = 0;  ///< relative; 0 = none
  double deviation = 0;        ///< relative standard deviation after the fit
  Determination determination = Determination::determined;
  std::string entangled_with;  ///< another parameter that the data cannot tell apart from it; may be empty
};

/// One measured point with its prediction.
struct CalibrationPoint {
  std::size_t log = 0;  ///< index into CalibrationReport::logs
  Bytes size;
  Duration measured, predicted, low, high;
  double relative_error = 0;     ///< (predicted - measured) / measured
  bool is_fitted = false;        ///< false = held out
  bool is_extrapolated = false;  ///< outside the fitted range, with a wider band
  bool is_outlier = false;       ///< far from its neighbours' error: a bad run or a regime the model lacks
  std::string regime;            ///< algorithm, protocol and channels used
};

struct CalibrationLogReport {
  std::string file;
  std::string name;
  int num_ranks = 0;
  int num_hosts = 0;
  bool is_held_out = false;
  double noise_floor = 0;     ///< relative deviation of one time: scatter of the measured curve about its forecast
  double error_before = 0;    ///< median over all points, of the forecast before the fit
  ValidationSummary summary;  ///< over all points of the log
  double error_without = 0;   ///< median error when the fit does not see this log; -1 = not computed
  bool is_odd = false;        ///< the other logs do not explain it: another setting than its scenario's, or a bad run
};

/// Errors of several points that belong together. Coverage is judged by a band that these points did not set, except
/// "in sample". "next larger count": fitted on the smaller counts, step by step. "before the fit": the fitted points as
/// the starts forecast them.
struct ErrorClass {
  std::string
      name;  ///< "in sample", "held-out sizes", "leave one log out", "leave out 8 ranks", "next larger count", ...
  ValidationSummary summary;
};

/// Neighbouring sizes whose errors jump where the regime of prediction or measurement changes.
struct RegimeChange {
  std::size_t log = 0;
  Bytes size;             ///< first size of the new regime
  double error_jump = 0;  ///< change of the signed relative error; 0 = NCCL's tuning lines say so
  std::string description;
};

struct CalibrationReport {
  std::string name;
  std::vector<FittedParameter> parameters;
  std::vector<CalibrationLogReport> logs;
  std::vector<CalibrationPoint> points;
  std::vector<ErrorClass> errors;
  std::vector<RegimeChange> regimes;
  double noise_floor = 0;       ///< median over logs
  double model_error = 0;       ///< model.fitted_error, half width of the 80 % band of what is like the logs
  double extrapolation = 0;     ///< further relative error per doubling of ranks or hosts
  ParameterSet fitted;          ///< what a parameter file needs, the band and the fitted range included
  int num_band_points = 0;      ///< left-out points that set the band; 0 = the fitted ones had to
  int evaluations = 0;          ///< simulated tables
  bool is_interrupted = false;  ///< best values so far, not the minimum; later parts are missing
  Diagnostics warnings;
  std::vector<InputFile> inputs;  ///< every file that was read
};

struct CalibrateOptions {
  bool with_leave_out = true;  ///< fit again without each count
  std::function<void(double share_done)> progress;
  const std::atomic<bool>* stop = nullptr;  ///< raise it to end early with the best values so far
};

Result<CalibrationReport> calibrate(const Calibration& calibration, const CalibrateOptions& options = {});

/// Every file that a fit reads, the topologies of its scenarios included.
std::vector<std::string> input_files(const Calibration& calibration);

/// Faults and doubts of a calibration and of the files it names, without fitting. Optional logs that are absent are no
/// fault.
Diagnostics check_calibration(const Calibration& calibration);

/// A calibration file for these logs on this topology, from their headers: an entry for each workload, and the
/// parameters that these data can determine. Paths are written relative to `folder`, where the file will be; empty =
/// the working directory. It runs as it is; comments say what the logs leave open. `benchmark` is that of nccl-tests
/// logs that do not say theirs.
Result<std::string> suggest_calibration(const std::string& topology_file, const std::vector<std::string>& logs,
                                        const std::string& folder = {}, std::optional<Benchmark> benchmark = {});

/// A parameter file (schema fabricast/parameters/1) with the report's fitted values.
std::string parameters_yaml(const CalibrationReport& report);

}  // namespace fabricast
