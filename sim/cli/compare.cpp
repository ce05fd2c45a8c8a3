// SPDX-License-Identifier: Apache-2.0
// fabricast compare A.yaml B.yaml [...]
#include <memory>

#include "cli/command.hpp"

namespace fabricast::cli {

namespace {

struct CompareOptions : CommonOptions {
  std::vector<std::string> scenarios;
};

int compare(const CompareOptions& options) {
  int exit_code = exit_ok;
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
  const auto format = format_of(options);
  const auto text = format == "json"  ? report::compare_json(all)
                    : format == "csv" ? report::compare_csv(all)
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
      "  fabricast compare a.yaml b.yaml c.yaml --format csv -o what-if.csv");
  command->add_option("SCENARIOS", options->scenarios, "two or more scenario files; the first is the reference")
      ->required()
      ->expected(2, 26);
  add_simulation_options(*command, *options);
  add_output_options(*command, *options, {"text", "json", "csv"});
  command->callback([options, &exit_code] { exit_code = compare(*options); });
}

}  // namespace fabricast::cli
