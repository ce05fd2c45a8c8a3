// SPDX-License-Identifier: Apache-2.0
// Measured logs with the scenario of each, loaded once, and what simulate() answers for other parameter values. A table
// is simulated again only when a parameter that it depends on has changed; a topology is built again only when a
// device's parameter has changed.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/calibration.hpp"
#include "fabricast/result.hpp"
#include "fit/least_squares.hpp"

namespace fabricast::fit {

/// A parameter that is fitted, by the logarithm of its value.
struct FreeParameter {
  Parameter parameter;         ///< value = start
  std::string inherits;        ///< name the value was taken from, when the parameter is not shipped
  double low = 0, high = 0;    ///< bounds of the value, > 0
  double prior_deviation = 0;  ///< of the logarithm; 0 = none
  bool has_own_start = false;  ///< given by the calibration file
  bool is_of_device = false;   ///< the topology is built from it
};

/// One log: its rows by size, and its simulation.
struct Experiment {
  CalibrationLog spec;
  std::string name;  ///< the file's, and what of it when the calibration uses it several times
  LoadedScenario loaded;
  ParameterSet current;  ///< of `loaded`, with the values simulated last
  std::vector<Bytes> sizes;
  std::vector<double> seconds;  ///< measured, median of the rows of a size
  std::vector<bool> is_fitted;
  std::vector<NcclChoice> choices;  ///< NCCL's own, when the log has its tuning lines
  std::vector<int> uses;            ///< free parameters that the predictions depend on
  int num_ranks = 0, num_hosts = 0;
};

class Dataset {
 public:
  /// Loads every log, scenario and parameter; reports all faults.
  static Result<Dataset> load(const Calibration& calibration);

  /// All faults and doubts of the calibration without simulating its tables; optional logs that are absent are not
  /// missed.
  static Diagnostics check(const Calibration& calibration);

  [[nodiscard]] const std::vector<Experiment>& experiments() const { return experiments_; }
  [[nodiscard]] const std::vector<FreeParameter>& parameters() const { return parameters_; }
  [[nodiscard]] const Diagnostics& warnings() const { return warnings_; }
  [[nodiscard]] int evaluations() const { return evaluations_; }

  /// Predicted seconds of every size of a log; `x` = logarithms of all free parameters. Infinite where the scenario
  /// cannot be forecast with these values: no step of a fit goes there.
  const Values& predict(std::size_t experiment, const Values& x);
  /// The whole table, with `extra` parameters set last; absent where the scenario cannot be forecast.
  std::optional<WorkloadPrediction> predict_table(std::size_t experiment, const Values& x, const ParameterSet& extra,
                                                  bool with_terms = true);
  /// Finds out which log depends on which parameter, around `x`. Returns true when that has changed.
  bool find_uses(const Values& x);

 private:
  struct Known {
    Values key;
    Values seconds;
  };
  struct Built {
    Values key;  ///< values of the device parameters
    Topology topology;
  };

  /// What a log was taken to measure: the same times again are no second proof.
  struct Measurement {
    std::string file, sha256, workload;
    std::vector<std::pair<Bytes, Duration>> rows;
    std::vector<int> lines;  ///< of the rows
  };

  void load_log(const Calibration& calibration, const CalibrationLog& log, Diagnostics& faults);
  void load_scenario_alone(const Calibration& calibration, const CalibrationLog& log, Diagnostics& faults);
  void add_experiment(Experiment experiment, const MeasuredHeader& header, Diagnostics& faults);
  bool is_repeated(const CalibrationLog& log, const MeasuredLog& table, const Workload& workload);
  void report_lost_rows(const MeasuredLog& log);
  void resolve(const Calibration& calibration, Diagnostics& faults);
  void hold_out(const Calibration& calibration);
  Values seconds_of(std::size_t experiment, const Values& x);
  void set_parameters(Experiment& experiment, const Values& x) const;
  /// nullptr when the devices' values make no topology.
  const Topology* topology_at(std::size_t experiment, const Values& x, const ParameterSet& set);

  std::vector<Experiment> experiments_;
  std::vector<FreeParameter> parameters_;
  std::vector<std::list<Known>> known_;    ///< per experiment, most recent first
  std::vector<std::list<Built>> built_;    ///< likewise
  std::vector<Measurement> measurements_;  ///< of the logs loaded
  Diagnostics warnings_;
  int evaluations_ = 0;
};

/// True when `text` matches `pattern`, in which `*` stands for any characters.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace fabricast::fit
