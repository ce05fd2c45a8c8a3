// SPDX-License-Identifier: Apache-2.0
// fabricast validate SCENARIO.yaml --measured LOG...
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "cli/command.hpp"
#include "fabricast/inputs.hpp"
#include "fabricast/measurement.hpp"
#include "fabricast/setting_hints.hpp"
#include "fabricast/validation.hpp"

namespace fabricast::cli {

namespace {

struct ValidateOptions : CommonOptions {
  std::string scenario;
  std::vector<std::string> logs;
  std::vector<std::string> rows;
  std::optional<std::string> max_median;
  std::optional<std::string> max_p90;
};

/// The table of a log that fits the scenario; a log of NCCL's tuning lines alone has no row, but choices to compare.
std::optional<MeasuredLog> read_table(const std::string& path, const Scenario& scenario,
                                      const std::vector<std::string>& rows, int& exit_code) {
  const auto logs = usable(read_logs(path), exit_code);
  if (!logs) return std::nullopt;
  auto table = table_for(*logs, scenario, rows);
  if (table && !table->refusal.empty()) {
    print_faults({{Severity::error, {path, table->line, table->line > 0 ? 1 : 0}, table->refusal, {}, {}}});
    exit_code = exit_input;
    return std::nullopt;
  }
  if (!table || (table->rows.empty() && table->tuning.choices.empty())) {
    if (table) print_faults(table->warnings);
    say(fmt::format("{}: error: no row of {} in this log\n", path, to_string(scenario.workloads.front().benchmark)));
    exit_code = exit_input;
    return std::nullopt;
  }
  print_faults(table->warnings);
  return table;
}

std::optional<LoadedScenario> load_first(const ValidateOptions& options, int& exit_code) {
  return usable(load_scenario(options.scenario, options.parameter_files, parse_settings(options.settings)), exit_code);
}

const std::vector<std::string> k_validate_formats = {"text", "json", "csv", "svg", "html"};

double share_inside(const WorkloadPrediction& prediction, const std::vector<MeasuredLog>& logs) {
  std::vector<Validation> validations;
  for (const auto& log : logs) validations.push_back(validate(prediction, log));
  return summarize(std::span<const Validation>(validations)).interval_coverage;
}

/// Other settings are tried where the forecast is off by more than the band of a known system; packet runs would take
/// too long.
void add_setting_hints(const ValidateOptions& options, const std::vector<MeasuredLog>& logs,
                       const std::vector<Bytes>& sizes, report::Validated& validated) {
  constexpr double k_nominal_inside = 0.8;
  const bool is_step = validated.workload->benchmark == Benchmark::training;  // compute takes most of it
  if (is_step || options.fidelity == "packet" || validated.overall.num_points == 0) return;
  SimulateOptions simulate_options;
  simulate_options.seed = options.seed;
  simulate_options.with_terms = false;
  const auto present = forecast_as_known(options.scenario, options.parameter_files, parse_settings(options.settings),
                                         sizes, simulate_options);
  if (!present || share_inside(*present, logs) >= k_nominal_inside) return;
  const auto changed = forecast_changes(options.scenario, options.parameter_files, parse_settings(options.settings),
                                        sizes, simulate_options);
  validated.num_tried = static_cast<int>(changed.size());
  validated.settings = explaining_settings(*present, changed, logs);
}

int validate_command(ValidateOptions options) {
  int exit_code = exit_ok;
  const auto format = format_of(options, k_validate_formats);
  options.written = {{"-o", options.output}};
  refuse_overwriting(options.written, options.logs);
  const auto max_median = parse_limit("--max-median-error", options.max_median);
  const auto max_p90 = parse_limit("--max-p90-error", options.max_p90);
  const auto loaded = load_first(options, exit_code);
  if (!loaded) return exit_code;
  std::vector<MeasuredLog> logs;
  std::set<Bytes> sizes;
  for (const auto& path : options.logs) {
    auto log = read_table(path, loaded->scenario, options.rows, exit_code);
    if (!log) return exit_code;
    const auto same = std::ranges::find(logs, log->sha256, &MeasuredLog::sha256);
    if (same != logs.end()) {
      print_faults({{Severity::warning, {path, 0, 0}, "the same file as '" + same->file + "': left out", {}, {}}});
      continue;
    }
    for (const auto size : sizes_of(*log)) sizes.insert(size);
    for (const auto& choice : log->tuning.choices) {
      if (log->rows.empty()) sizes.insert(choice.size);
    }
    logs.push_back(std::move(*log));
  }
  const auto logged = as_logged(*loaded, logs, [&](const std::vector<Setting>& more) {
    auto settings = parse_settings(options.settings);
    settings.insert(settings.end(), more.begin(), more.end());
    return load_scenario(options.scenario, options.parameter_files, settings);
  });
  for (const auto& one : logged.settings) options.settings.push_back(one.path + "=" + one.value);
  auto run = run_scenario(options.scenario, options, exit_code, {sizes.begin(), sizes.end()});
  if (!run) return exit_code;
  if (was_interrupted()) return exit_interrupted;
  for (const auto& log : logs) note_hash(run->provenance.inputs, log.file, log.sha256);
  auto& workload = run->prediction.workloads.front();
  std::erase_if(workload.rows, [](const Row& row) { return row.fabric && !row.fabric->is_finished(); });
  std::vector<Validation> validations;
  for (const auto& log : logs) validations.push_back(validate(workload, log));
  for (auto& one : validations) {
    for (const auto& text : {logged.note, text_of_contradictions(*loaded, logs)})
      if (!text.empty()) one.warnings.push_back({Severity::warning, {one.file, 0, 0}, text, {}, {}});
  }
  report::Validated validated{validations,
                              summarize(std::span<const Validation>(validations)),
                              run->prediction.scenario,
                              &workload,
                              &run->provenance,
                              {},
                              0};
  add_setting_hints(options, logs, {sizes.begin(), sizes.end()}, validated);
  const auto text = format == "json"   ? report::validation_json(validated)
                    : format == "csv"  ? report::validation_csv(validated)
                    : format == "svg"  ? report::validation_svg(validated)
                    : format == "html" ? report::validation_html(validated)
                                       : report::validation_text(validated);
  if (!write_output(options.output, text, exit_code)) return exit_code;
  const auto missed = [&](const char* what, double value, std::optional<double> limit) {
    if (!limit || value <= *limit) return;
    say(fmt::format("fabricast: {} error {:.1f}% is above the limit of {:.1f}%\n", what, 100 * value, 100 * *limit));
    exit_code = exit_limit_missed;
  };
  missed("median", validated.overall.median_abs_error, max_median);
  missed("90th percentile", validated.overall.p90_abs_error, max_p90);
  return exit_code;
}

}  // namespace

void add_validate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ValidateOptions>();
  auto* command = app.add_subcommand("validate", "predicted against measured, size by size");
  command->footer(
      "Examples:\n"
      "  fabricast validate scenario.yaml --measured all_reduce.log\n"
      "  fabricast validate scenario.yaml --measured run1.log run2.log --max-median-error 10% --format json");
  command->add_option("SCENARIO", options->scenario, "scenario file; its first workload is compared")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--measured", options->logs,
                   "logs of nccl-tests, OSU, perftest, iperf3 or sockperf, tables of training steps, what run printed")
      ->required()
      ->type_name("LOG...");
  command
      ->add_option("--rows", options->rows,
                   "of a training table: only rows that hold this text (repeatable: all of them)")
      ->check(not_empty())
      ->allow_extra_args(false)
      ->type_name("TEXT");
  command->add_option("--max-median-error", options->max_median, "exit 1 when the median error is above, e.g. 10%")
      ->type_name("SHARE");
  command->add_option("--max-p90-error", options->max_p90, "exit 1 when the 90th percentile is above")
      ->type_name("SHARE");
  add_simulation_options(*command, *options);
  add_output_options(*command, *options, k_validate_formats);
  command->callback([options, &exit_code] { exit_code = validate_command(*options); });
}

}  // namespace fabricast::cli
