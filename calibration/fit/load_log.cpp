// SPDX-License-Identifier: Apache-2.0
// One entry of a calibration file: the measured log, the scenario it was measured under, and whether they belong
// together.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "fabricast/setting_hints.hpp"
#include "fabricast/simulate.hpp"
#include "fit/dataset.hpp"

namespace fabricast::fit {

namespace {

/// Median time by size, ascending; rows of size 0 of nccl-tests time nothing.
std::map<Bytes, std::vector<double>> times_by_size(const MeasuredLog& log) {
  std::map<Bytes, std::vector<double>> out;
  const bool is_nccl = log.format == LogFormat::nccl_tests || log.format == LogFormat::nccl_tests_json;
  for (const auto& row : log.rows) {
    if (row.time.ps > 0 && (row.size.value > 0 || !is_nccl)) out[row.size].push_back(row.time.seconds());
  }
  return out;
}

/// What tells workloads on one file apart.
std::string description_of(const Workload& workload) {
  std::string out(to_string(workload.benchmark));
  if (workload.gpus) out += fmt::format(" {} GPUs", *workload.gpus);
  for (const auto& device : workload.devices) out += " " + device;
  if (workload.benchmark == Benchmark::host_copies) out += fmt::format(" {}", to_string(workload.direction));
  if (workload.is_bidirectional) out += " both ways";
  return out;
}

/// Whatever is wrong with a log or its workload is shown where the calibration names it; a scenario file of its own has
/// places of its own.
void add_faults(const CalibrationLog& log, Diagnostics found, bool is_of_log, Diagnostics& faults) {
  const bool has_own_place = !is_of_log && !log.scenario_file.empty();
  for (auto& fault : found) {
    if (!has_own_place) fault.location = log.location;
    if (!has_own_place) fault.source_line.clear();
    faults.push_back(std::move(fault));
  }
}

/// The table that the scenario forecasts; a fault when the log has none.
std::optional<MeasuredLog> fitting_table(const CalibrationLog& log, const std::vector<MeasuredLog>& tables,
                                         const Scenario& scenario, Diagnostics& faults) {
  const auto wanted = scenario.workloads.front().benchmark;
  auto best = table_for(tables, scenario, log.rows);
  if (best && !best->refusal.empty()) {
    faults.push_back(make_error_at(log.location, fmt::format("'{}': {}", log.file, best->refusal)));
    return std::nullopt;
  }
  if (!best || best->rows.empty()) {
    const bool has_reason = best && !best->warnings.empty();
    faults.push_back(make_error_at(log.location, fmt::format("'{}' has no row of {}", log.file, to_string(wanted)),
                                   has_reason
                                       ? best->warnings.back().message
                                       : "compare the workload's benchmark, gpus, devices and direction with the log"));
    return std::nullopt;
  }
  return best;
}

Result<LoadedScenario> load_scenario_of(const Calibration& calibration, const CalibrationLog& log) {
  if (log.scenario_file.empty())
    return load_scenario_text(calibration.file, log.scenario_text, calibration.parameter_files, log.settings);
  return load_scenario(log.scenario_file, calibration.parameter_files, log.settings);
}

int most_gpus_of_a_host(const Topology& topology) {
  int most = 0;
  for (int host = 0; host < topology.num_hosts(); ++host) most = std::max(most, topology.count(DeviceKind::gpu, host));
  return most;
}

}  // namespace

void Dataset::load_scenario_alone(const Calibration& calibration, const CalibrationLog& log, Diagnostics& faults) {
  auto loaded = load_scenario_of(calibration, log);
  if (!loaded) return add_faults(log, loaded.error(), false, faults);
  Experiment experiment{log, {}, std::move(*loaded), {}, {}, {}, {}, {}, {}, 0, 0};
  experiments_.push_back(std::move(experiment));
}

void Dataset::load_log(const Calibration& calibration, const CalibrationLog& log, Diagnostics& faults) {
  if (log.is_optional && !std::filesystem::exists(log.file)) {
    warnings_.push_back(make_warning_at(log.location, fmt::format("'{}' is absent, left out", log.file)));
    return;
  }
  const auto tables = read_logs(log.file);
  if (!tables) add_faults(log, tables.error(), true, faults);
  auto loaded = load_scenario_of(calibration, log);
  if (!loaded) add_faults(log, loaded.error(), false, faults);
  if (!tables || !loaded) return;
  const auto table = fitting_table(log, *tables, loaded->scenario, faults);
  if (!table) return;
  if (is_repeated(log, *table, loaded->scenario.workloads.front())) return;
  report_lost_rows(*table);
  auto logged = as_logged(*loaded, {&*table, 1}, [&](const std::vector<Setting>& more) {
    auto as_said = log;
    as_said.settings.insert(as_said.settings.end(), more.begin(), more.end());
    return load_scenario_of(calibration, as_said);
  });
  for (const auto& text : {logged.note, text_of_contradictions(*loaded, {&*table, 1})})
    if (!text.empty()) warnings_.push_back(make_warning_at(log.location, fmt::format("'{}': {}", log.file, text)));
  if (logged.scenario) loaded = std::move(*logged.scenario);
  Experiment experiment{log, {}, std::move(*loaded), {}, {}, {}, {}, {}, {}, 0, 0};
  experiment.name = std::filesystem::path(log.file).stem().string();
  const auto uses_of_file = std::count_if(calibration.logs.begin(), calibration.logs.end(),
                                          [&](const CalibrationLog& other) { return other.file == log.file; });
  if (uses_of_file > 1) experiment.name += ": " + description_of(experiment.loaded.scenario.workloads.front());
  experiment.choices = table->tuning.choices;
  experiment.current = experiment.loaded.parameters;
  const bool is_training = experiment.loaded.scenario.workloads.front().benchmark == Benchmark::training;
  for (auto& [size, times] : times_by_size(*table)) {
    if (is_training) {
      // Every number of GPUs is an experiment of its own, so that larger ones can be left out.
      auto one = experiment;
      one.name += fmt::format(": {} GPUs", size.value);
      one.sizes = one.loaded.scenario.workloads.front().sizes = {size};
      one.seconds = {percentile(times, 0.5)};
      add_experiment(std::move(one), {}, faults);
      continue;
    }
    experiment.sizes.push_back(size);
    experiment.seconds.push_back(percentile(times, 0.5));
  }
  if (is_training) return;
  if (experiment.sizes.empty()) {
    faults.push_back(
        make_error_at(log.location, fmt::format("'{}' has no row with a size and a time above zero", log.file)));
    return;
  }
  experiment.loaded.scenario.workloads.front().sizes = experiment.sizes;
  add_experiment(std::move(experiment), table->header, faults);
}

/// True, with a warning, when an earlier log holds the same measurement: the same rows of one file, or of a copy of it.
bool Dataset::is_repeated(const CalibrationLog& log, const MeasuredLog& table, const Workload& workload) {
  constexpr std::size_t k_not_by_chance = 4;  // rows whose times are alike to the last digit
  Measurement one{log.file, table.sha256, description_of(workload), {}, {}};
  for (const auto& row : table.rows) {
    one.rows.emplace_back(row.size, row.time);
    one.lines.push_back(row.line);
  }
  const auto same = std::find_if(measurements_.begin(), measurements_.end(), [&](const Measurement& other) {
    const bool is_of_file = !one.sha256.empty() && other.sha256 == one.sha256;
    return other.workload == one.workload && other.rows == one.rows &&
           (is_of_file ? other.lines == one.lines : one.rows.size() >= k_not_by_chance);
  });
  if (same != measurements_.end())
    warnings_.push_back(make_warning_at(
        log.location, fmt::format("'{}' holds the same measurement as '{}': it is left out, it proves nothing more",
                                  log.file, same->file)));
  const bool is_known = same != measurements_.end();
  if (!is_known) measurements_.push_back(std::move(one));
  return is_known;
}

/// Runs the scenario once: it must run for every measured size, and on as many ranks and hosts as the log says.
void Dataset::add_experiment(Experiment experiment, const MeasuredHeader& header, Diagnostics& faults) {
  const auto& log = experiment.spec;
  SimulateOptions options;
  options.with_terms = false;
  const auto& scenario = experiment.loaded.scenario;
  const auto probe = simulate(experiment.loaded.topology, scenario, experiment.loaded.parameters, options);
  if (!probe) return add_faults(log, probe.error(), false, faults);
  for (const auto& row : probe->workloads.front().rows) {
    if (row.time.ps > 0) continue;
    faults.push_back(
        make_error_at(log.location, fmt::format("the forecast of {} takes no time, so that no ratio to the "
                                                "measurement exists",
                                                to_string(row.size))));
    return;
  }
  experiment.num_ranks = probe->workloads.front().num_ranks;
  experiment.num_hosts = probe->workloads.front().num_hosts;
  const bool is_collection = scenario.workloads.front().benchmark == Benchmark::host_copies;
  // A ping through one adapter stands for one between two, as far as it goes.
  const bool is_loopback = family_of(scenario.workloads.front().benchmark) == BenchmarkFamily::perftest;
  const auto is_refused = [&](std::optional<int> logged, int forecast, const char* what, const char* keys) {
    if (is_collection || !logged || *logged == forecast || forecast <= 0) return false;
    const auto message = fmt::format("'{}' has {} {}, its workload {}", log.file, *logged, what, forecast);
    if (is_loopback) warnings_.push_back(make_warning_at(log.location, message));
    if (!is_loopback) faults.push_back(make_error_at(log.location, message, keys));
    return !is_loopback;
  };
  const auto most_gpus = most_gpus_of_a_host(experiment.loaded.topology);
  const bool is_too_dense = family_of(scenario.workloads.front().benchmark) == BenchmarkFamily::nccl_tests &&
                            header.ranks_per_host > most_gpus;
  const auto host_keys = is_too_dense
                             ? fmt::format("the log has {} GPUs on a host, hosts of topology '{}' have {}",
                                           *header.ranks_per_host, experiment.loaded.topology.name(), most_gpus)
                             : "set ranks_per_host or devices as it was measured";
  const bool is_elsewhere =
      is_refused(header.num_ranks, experiment.num_ranks, "ranks", "set gpus, ranks or devices as it was measured") ||
      is_refused(header.num_hosts, experiment.num_hosts, "hosts", host_keys.c_str());
  if (is_elsewhere) return;
  experiments_.push_back(std::move(experiment));
}

/// Rows that were damaged are named, a few of each log.
void Dataset::report_lost_rows(const MeasuredLog& log) {
  constexpr std::size_t k_most = 3;
  for (std::size_t i = 0; i < std::min(k_most, log.warnings.size()); ++i) warnings_.push_back(log.warnings[i]);
  if (log.warnings.size() <= k_most) return;
  warnings_.push_back(
      make_warning_at({log.file, 0, 0}, fmt::format("{} more warnings of this log", log.warnings.size() - k_most)));
}

}  // namespace fabricast::fit
