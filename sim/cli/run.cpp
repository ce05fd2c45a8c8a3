// SPDX-License-Identifier: Apache-2.0
// fabricast run SCENARIO.yaml
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>

#include "cli/command.hpp"

namespace fabricast::cli {

namespace {

struct RunOptions : CommonOptions {
  std::string scenario;
  std::string explain;
  std::string trace;
};

int run(const RunOptions& options) {
  int exit_code = exit_ok;
  std::optional<Bytes> explained;
  // The table prints plain bytes: what is copied from it needs no unit.
  const bool is_plain = options.explain.find_first_not_of("0123456789") == std::string::npos;
  const bool is_label = !options.explain.empty() && std::isdigit(static_cast<unsigned char>(options.explain[0])) == 0;
  if (!options.explain.empty() && !is_label) explained = parse_size(is_plain ? options.explain + "B" : options.explain);
  const auto result = run_scenario(options.scenario, options, exit_code, {}, explained);
  if (!result) return exit_code;
  const report::Document document{result->prediction, result->loaded.scenario, result->provenance};
  const auto format = format_of(options);
  std::string text;
  if (format == "json") text = report::json(document);
  if (format == "csv") text = report::csv(document);
  if (format == "html") text = report::html(document);
  if (format == "text") {
    text = report::text(document);
    const auto is_asked = [&](const Row& row) {
      return is_label ? row.label == options.explain : explained && row.size == *explained;
    };
    bool is_found = options.explain.empty();
    for (const auto& workload : result->prediction.workloads) {
      const auto row = std::find_if(workload.rows.begin(), workload.rows.end(), is_asked);
      if (row == workload.rows.end()) continue;
      text += "\n" + report::explain(workload, *row);
      is_found = true;
    }
    if (!is_found) {
      std::fputs(fmt::format("fabricast: no row '{}' to explain\n", options.explain).c_str(), stderr);
      return exit_usage;
    }
  }
  if (!write_output(options.output, text, exit_code)) return exit_code;
  if (!options.trace.empty()) write_output(options.trace, report::trace(document), exit_code);
  return exit_code;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  auto* command = app.add_subcommand("run", "predict a scenario's benchmark table");
  command->footer(
      "Examples:\n"
      "  fabricast run scenarios/osu-latency-fdr-gpudirect.yaml --explain 64B\n"
      "  fabricast run scenarios/allreduce-dgx-a100-16.yaml --set workload.gpus=64 --format json -o forecast.json");
  command->add_option("SCENARIO", options->scenario, "scenario file (schema fabricast/scenario/1)")->required();
  add_simulation_options(*command, *options);
  add_output_options(*command, *options, {"text", "json", "csv", "html"});
  command
      ->add_option("--explain", options->explain,
                   "split the time of one size (64MiB) or client (its name) into terms that add up to it")
      ->type_name("SIZE|NAME");
  command->add_option("--trace", options->trace, "write the terms as a Chrome/Perfetto trace")->type_name("FILE");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace fabricast::cli
