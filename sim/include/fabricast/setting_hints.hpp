// SPDX-License-Identifier: Apache-2.0
// Which setting would explain a measured log: the scenario is forecast again with each of the settings that are often
// other than its writer thinks (peer access, NVLink SHARP, release, algorithm, GPUDirect RDMA, redirecting switches,
// number of HCAs, MTU ...), and those that bring the forecast clearly nearer are named, nearest first.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/load.hpp"
#include "fabricast/simulate.hpp"
#include "fabricast/validation.hpp"

namespace fabricast {

/// What all of `logs` say of how they were taken and the scenario leaves open, other than it takes it to be: how
/// operations were started, how many GPUs or ranks took part, buffers, window, pairs, queue pairs, NCCL's release and
/// settings of its environment. A table whose columns are of the time before NCCL 2.13 stands for 2.8. Empty for
/// scenarios of several workloads.
std::vector<Setting> settings_of_logs(const LoadedScenario& loaded, std::span<const MeasuredLog> logs);

/// A scenario as its logs say that it was measured.
struct AsLogged {
  std::vector<Setting> settings;           ///< what was taken: that with which the scenario loads
  std::optional<LoadedScenario> scenario;  ///< with them; absent when nothing was taken
  std::string note;                        ///< what was taken, and why what was not; empty when nothing is open
};

/// `load` reads the scenario with settings added to its own; `is_wanted` (by default all) chooses among them.
AsLogged as_logged(const LoadedScenario& loaded, std::span<const MeasuredLog> logs,
                   const std::function<Result<LoadedScenario>(const std::vector<Setting>&)>& load,
                   const std::function<bool(const Setting&)>& is_wanted = {});

/// "the scenario gives workload.launch=graph, the log says one_thread; the log is of 'NVIDIA H100 80GB HBM3', the
/// topology has a100-sxm4-40"; empty where they agree. The scenario stands.
std::string text_of_contradictions(const LoadedScenario& loaded, std::span<const MeasuredLog> logs);

/// One way in which a scenario may differ from what was measured.
struct SettingChange {
  std::string name;  ///< "software.nccl.nvls=on"
  std::vector<Setting> settings;
};

/// What to try for a scenario; a change that says what is so already does no harm.
std::vector<SettingChange> settings_to_try(const Scenario& scenario, const TopologySpec& topology);

/// The scenario's first workload under one change.
struct ChangedForecast {
  std::string setting;
  WorkloadPrediction prediction;
};

/// The scenario's first workload at `sizes` as of a system that somebody calibrated: its band has no scatter between
/// systems, so that an error that a setting would explain is not taken for scatter. Nothing where it cannot be
/// forecast.
std::optional<WorkloadPrediction> forecast_as_known(const std::string& scenario_file,
                                                    const std::vector<std::string>& parameter_files,
                                                    const std::vector<Setting>& settings,
                                                    const std::vector<Bytes>& sizes,
                                                    const SimulateOptions& options = {});

/// Forecasts `sizes` of the scenario file under every change, with the same band; changes that cannot be forecast are
/// left out.
std::vector<ChangedForecast> forecast_changes(const std::string& scenario_file,
                                              const std::vector<std::string>& parameter_files,
                                              const std::vector<Setting>& settings, const std::vector<Bytes>& sizes,
                                              const SimulateOptions& options = {});

/// The changes that explain the logs, nearest first, at most five. A change explains them when more points lie outside
/// the present band than a band leaves out, the mean of |ln(predicted / measured)| falls to 60 % or less and by five
/// hundredths or more, and clearly more points lie inside the changed forecast's band.
std::vector<SettingEffect> explaining_settings(const WorkloadPrediction& present,
                                               const std::vector<ChangedForecast>& changed,
                                               const std::vector<MeasuredLog>& logs);

}  // namespace fabricast
