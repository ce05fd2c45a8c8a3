// SPDX-License-Identifier: Apache-2.0
// fabricast check FILE...
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "check/fold.hpp"
#include "cli/command.hpp"
#include "cli/evidence.hpp"
#include "fabricast/calibration.hpp"
#include "fabricast/check.hpp"
#include "fabricast/inputs.hpp"
#include "fabricast/load_plan.hpp"
#include "fabricast/simulate.hpp"
#include "fabricast/sweep.hpp"

namespace fabricast::cli {

namespace {

struct CheckOptions {
  std::vector<std::string> files;
  std::vector<std::string> settings;
  bool is_strict = false;
  CommonOptions written;  ///< format and -o
};

const std::vector<std::string> k_check_formats = {"text", "json", "html"};

Diagnostics joined(Diagnostics first, const Diagnostics& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Faults and doubts of one file; errors when it cannot be used. `features`: what its virtual hosts can do, how a
/// lossless fabric is set, and what forecasts rest on. `inputs`: what was read.
Diagnostics check_file(const std::string& path, const std::vector<Setting>& settings, std::string& features,
                       std::vector<InputFile>& inputs) {
  note_file(inputs, path);
  const auto kind = file_kind(path);
  if (!kind) return kind.error();
  if (*kind == "parameters") {
    const auto parameters = load_parameters(path);
    return parameters ? parameters->warnings : parameters.error();
  }
  if (*kind == "device") {
    const auto device = load_device(path);
    return device ? Diagnostics{} : device.error();
  }
  if (*kind == "plan") {
    const auto plan = load_sweep_plan(path);
    if (!plan) return plan.error();
    for (const auto& [name, sum] : plan->inputs) note_hash(inputs, name, sum);
    const auto tried = preflight(*plan);
    for (const auto& [name, sum] : tried.inputs) note_hash(inputs, name, sum);
    return joined(space_faults(*plan), tried.faults);
  }
  if (*kind == "cost") {
    const auto cost = load_cost_model(path);
    return cost ? Diagnostics{} : cost.error();
  }
  if (*kind == "calibration") {
    const auto calibration = load_calibration(path);
    if (!calibration) return calibration.error();
    for (const auto& name : input_files(*calibration)) note_file(inputs, name);
    return check_calibration(*calibration);
  }
  if (*kind == "topology") {
    const auto loaded = load_topology(path, {}, settings);
    if (!loaded) return loaded.error();
    inputs = loaded->inputs;
    features = virtual_features(loaded->topology, loaded->parameters) +
               describe_lossless(loaded->topology, loaded->parameters);
    return check_all(*loaded);
  }
  const auto loaded = load_scenario(path, {}, settings);
  if (!loaded) return loaded.error();
  inputs = loaded->inputs;
  const auto evidence = describe_evidence(*loaded);
  features = virtual_features(loaded->topology, loaded->parameters) +
             describe_lossless(loaded->topology, loaded->parameters, &loaded->scenario) + evidence.value_or("");
  auto found = check_all(*loaded);
  // What `run` would refuse while it plans: nothing, where the ends of its sizes were forecast.
  if (has_errors(found) || evidence) return found;
  return joined(std::move(found), planning_faults(loaded->topology, loaded->scenario, loaded->parameters));
}

int check(const CheckOptions& options) {
  const auto settings = parse_settings(options.settings);
  const auto format = format_of(options.written, k_check_formats);
  refuse_overwriting(std::vector<OutputFile>{{"-o", options.written.output}}, options.files);
  int errors = 0;
  int warnings = 0;
  std::vector<report::CheckedFile> all;
  std::string table;
  for (const auto& file : options.files) {
    std::string features;
    std::vector<InputFile> inputs;
    auto found = check::folded(check_file(file, settings, features, inputs));
    add_source_lines(found);
    print_faults(found);
    for (const auto& one : found) ++(one.severity == Severity::error ? errors : warnings);
    all.push_back({file, found, features, std::move(inputs)});
    const auto noted = found.empty() ? "" : fmt::format(", {} warning{}", found.size(), found.size() == 1 ? "" : "s");
    if (!has_errors(found)) table += fmt::format("{}: ok{}\n", file, noted);
    table += features;
  }
  int exit_code = exit_ok;
  const auto text = format == "json"   ? report::check_json(all, k_version)
                    : format == "html" ? report::check_html(all, k_version)
                                       : table;
  if (!write_output(options.written.output, text, exit_code)) return exit_code;
  if (errors > 0) {
    say(fmt::format("fabricast: {} error{} in {} file{}\n", errors, errors == 1 ? "" : "s", options.files.size(),
                    options.files.size() == 1 ? "" : "s"));
    return exit_input;
  }
  return options.is_strict && warnings > 0 ? exit_limit_missed : exit_ok;
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CheckOptions>();
  auto* command = app.add_subcommand("check", "all faults and doubtful settings of files, without running");
  command->footer(
      "Examples:\n  fabricast check topologies/dgx-a100-16.yaml scenarios/*.yaml\n  fabricast check --strict "
      "my-scenario.yaml");
  command->add_option("FILES", options->files, "scenario, topology, parameter, device, calibration, plan or cost files")
      ->required()
      ->type_name("FILE");
  command->add_option("--set", options->settings, "change one value before checking (repeatable)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  add_output_options(*command, options->written, k_check_formats);
  command->add_flag("--strict", options->is_strict, "exit 1 when there are warnings");
  command->callback([options, &exit_code] { exit_code = check(*options); });
}

}  // namespace fabricast::cli
