// SPDX-License-Identifier: Apache-2.0
// fabricast calibrate CALIBRATION.yaml -o PARAMETERS.yaml; fabricast calibrate --suggest TOPOLOGY LOG...
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include "cli/command.hpp"
#include "fabricast/calibration.hpp"

namespace fabricast::cli {

namespace {

struct CalibrateCommand {
  std::vector<std::string> files;
  bool is_suggestion = false;
  std::string output;
  std::string report;
  std::string format;
  std::optional<std::string> max_median;
  std::string benchmark;
  bool is_quick = false;
  bool is_quiet = false;
  int hold_out_every = 0;
  std::vector<int> hold_out_ranks, hold_out_hosts;
};

int refuse(Diagnostics faults) {
  print_faults(faults);
  return exit_input;
}

/// The parameter (or calibration) file and the report; wrong suffixes are usage errors.
std::vector<OutputFile> written_files(CalibrateCommand& command) {
  std::vector<OutputFile> files;
  if (!command.output.empty()) {
    files.push_back({"-o", command.output});
    format_by_suffix(files.back(), {"yaml"});
  }
  if (!command.report.empty()) files.push_back({"--report", command.report});
  if (command.format.empty()) command.format = format_by_suffix({"--report", command.report}, {"text", "json", "html"});
  return files;
}

int suggest(CalibrateCommand command) {
  int exit_code = exit_ok;
  refuse_overwriting(written_files(command), command.files);
  if (command.files.size() < 2) {
    std::fputs("fabricast: --suggest needs a topology file and at least one log\n", stderr);
    return exit_usage;
  }
  const auto folder = std::filesystem::path(command.output == "-" ? "" : command.output).parent_path().string();
  if (command.max_median) {
    std::fputs("fabricast: --max-median-error judges a fit, --suggest makes none\n", stderr);
    return exit_usage;
  }
  std::optional<Benchmark> benchmark;
  for (const auto one : nccl_collectives()) {
    if (to_string(one) == command.benchmark) benchmark = one;
  }
  const auto text =
      suggest_calibration(command.files[0], {command.files.begin() + 1, command.files.end()}, folder, benchmark);
  if (!text) return refuse(text.error());
  write_output(command.output.empty() ? "-" : command.output, *text, exit_code);
  return exit_code;
}

int fit(CalibrateCommand command) {
  int exit_code = exit_ok;
  const auto written = written_files(command);
  refuse_overwriting(written, command.files);
  const auto max_median = parse_limit("--max-median-error", command.max_median);
  if (!command.benchmark.empty()) {
    std::fputs("fabricast: --benchmark goes with --suggest; a calibration file names it under 'workload'\n", stderr);
    return exit_usage;
  }
  if (command.files.size() != 1) {
    std::fputs("fabricast: calibrate takes one calibration file (or --suggest TOPOLOGY LOG...)\n", stderr);
    return exit_usage;
  }
  auto calibration = load_calibration(command.files[0]);
  if (!calibration) return refuse(calibration.error());
  if (!written.empty()) refuse_overwriting(written, input_files(*calibration));
  if (command.hold_out_every > 0) calibration->hold_out_every = command.hold_out_every;
  if (!command.hold_out_ranks.empty()) calibration->hold_out_ranks = command.hold_out_ranks;
  if (!command.hold_out_hosts.empty()) calibration->hold_out_hosts = command.hold_out_hosts;
  CalibrateOptions options;
  options.with_leave_out = !command.is_quick;
  options.stop = &stop_flag();
  const auto report = [&] {
    Progress progress("fitting", command.is_quiet);
    options.progress = [&](double share) { progress.show(share); };
    return calibrate(*calibration, options);
  }();
  if (!report) return refuse(report.error());
  auto warnings = report->warnings;
  print_faults(warnings);
  const auto text = command.format == "json"   ? report::calibration_json(*report)
                    : command.format == "html" ? report::calibration_html(*report)
                                               : report::calibration_text(*report);
  if (!write_output(command.report.empty() ? "-" : command.report, text, exit_code)) return exit_code;
  if (!command.output.empty() && !write_output(command.output, parameters_yaml(*report), exit_code)) return exit_code;
  if (report->is_interrupted) return exit_interrupted;
  // The honest figure: the class the fit did not see, when there is one.
  const auto& judged = report->errors.size() > 1 ? report->errors[1] : report->errors.front();
  if (max_median && judged.summary.median_abs_error > *max_median) {
    say(fmt::format("fabricast: median error ({}) {:.1f}% is above the limit of {:.1f}%\n", judged.name,
                    100 * judged.summary.median_abs_error, 100 * *max_median));
    exit_code = exit_limit_missed;
  }
  return exit_code;
}

}  // namespace

void add_calibrate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CalibrateCommand>();
  auto* command = app.add_subcommand("calibrate", "fit parameters to measured logs, with honest error");
  command->footer(
      "Examples:\n"
      "  fabricast calibrate --suggest topology.yaml run1.log run2.log -o calibration.yaml\n"
      "  fabricast calibrate calibration.yaml -o parameters.yaml --max-median-error 5%");
  command->add_option("FILE", options->files, "a calibration file; with --suggest a topology and its logs")
      ->required()
      ->type_name("FILE");
  command->add_flag("--suggest", options->is_suggestion, "write a first calibration file from the logs' headers");
  command->add_option("-o,--output", options->output, "parameter file to write (with --suggest: calibration file)")
      ->type_name("FILE");
  command->add_option("--report", options->report, "where the report goes; default standard output")->type_name("FILE");
  command->add_option("--format", options->format, "of the report; default: by the suffix of --report, else text")
      ->check(CLI::IsMember({"text", "json", "html"}).description(""))
      ->type_name("text|json|html");
  std::vector<std::string> collectives;
  for (const auto one : nccl_collectives()) collectives.emplace_back(to_string(one));
  command
      ->add_option("--benchmark", options->benchmark,
                   "with --suggest: collective of nccl-tests logs that do not say theirs")
      ->check(CLI::IsMember(collectives))
      ->type_name("NAME");
  command->add_option("--hold-out-every", options->hold_out_every, "do not fit every N-th size, instead of the file's")
      ->check(CLI::Range(2, 1000))
      ->type_name("N");
  command->add_option("--hold-out-ranks", options->hold_out_ranks, "do not fit logs of so many ranks")
      ->check(whole_number(1'000'000, 1))
      ->type_name("N...");
  command->add_option("--hold-out-hosts", options->hold_out_hosts, "do not fit logs of so many hosts")
      ->check(whole_number(1'000'000, 1))
      ->type_name("N...");
  command->add_flag("--quick", options->is_quick, "do not fit again without each count");
  command->add_flag("-q,--quiet", options->is_quiet, "no progress on standard error");
  command
      ->add_option("--max-median-error", options->max_median,
                   "exit 1 when the median error of unseen points is above, e.g. 5%")
      ->type_name("SHARE");
  command->callback([options, &exit_code] { exit_code = options->is_suggestion ? suggest(*options) : fit(*options); });
}

}  // namespace fabricast::cli
