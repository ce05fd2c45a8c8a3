// SPDX-License-Identifier: Apache-2.0
// fabricast compare A.yaml B.yaml [...]
#include <memory>

#include "cli/command.hpp"

namespace fabricast::cli {

namespace {

struct CompareOptions : CommonOptions {
  std::vector<std::string> scenarios;
};

const std::vector<std::string> k_formats = {"text", "json", "csv", "html"};

int compare(CompareOptions options) {
  int exit_code = exit_ok;
  const auto format = format_of(options, k_formats);
  options.written = {{"-o", options.output}};
  refuse_overwriting(options.written, options.scenarios);
  std::vector<Run> runs;
  bool all_good = true;
  for (const auto& scenario : options.scenarios) {
    auto run = run_scenario(scenario, options, exit_code);
    all_good = all_good && run.has_value();
    if (run) runs.push_back(std::move(*run));
  }
  if (!all_good) return exit_code;
  std::vector<report::Compared> all;
  for (std::size_t i = 0; i < runs.size(); ++i)
    all.push_back({options.scenarios[i], &runs[i].prediction, &runs[i].loaded.scenario, &runs[i].provenance});
  if (was_interrupted()) return exit_interrupted;  // the last scenario's rows are not whole
  const auto text = format == "json"   ? report::compare_json(all)
                    : format == "csv"  ? report::compare_csv(all)
                    : format == "html" ? report::compare_html(all)
                                       : report::compare_text(all);
  write_output(options.output, text, exit_code);
  return exit_code;
}

}  // namespace

void add_compare(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CompareOptions>();
  auto* command = app.add_subcommand("compare", "what-if: scenarios side by side, with the terms that changed");
  command->footer(
      "Examples:\n"
      "  fabricast compare scenarios/osu-latency-fdr-gpudirect.yaml scenarios/osu-latency-fdr-no-gpudirect.yaml\n"
      "  fabricast compare a.yaml b.yaml c.yaml -o what-if.html");
  command->add_option("SCENARIOS", options->scenarios, "two or more scenario files; the first is the reference")
      ->required()
      ->type_name("FILE")
      ->expected(2, 26);
  add_simulation_options(*command, *options);
  add_output_options(*command, *options, k_formats);
  command->callback([options, &exit_code] { exit_code = compare(*options); });
}

}  // namespace fabricast::cli
