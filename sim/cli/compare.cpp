// SPDX-License-Identifier: Apache-2.0
// fabricast compare A.yaml B.yaml [...]
#include <memory>

#include "cli/command.hpp"
#include "cli/density.hpp"

namespace fabricast::cli {

namespace {

struct CompareOptions : CommonOptions {
  std::vector<std::string> scenarios;
  std::string density;  ///< name of a VM
};

const std::vector<std::string> k_compare_formats = {"text", "json", "csv", "html"};

int density(const CompareOptions& options) {
  int exit_code = exit_ok;
  if (options.scenarios.size() != 1)
    throw CLI::ValidationError("--density", "takes one scenario: it compares numbers of VMs on its hosts");
  if (!options.format.empty() && options.format != "text") throw CLI::ValidationError("--density", "prints text only");
  refuse_overwriting(std::vector<OutputFile>{{"-o", options.output}}, options.scenarios);
  const auto table = density_table(options.scenarios.front(), options.density, options, exit_code);
  if (table) write_output(options.output, *table, exit_code);
  return was_interrupted() ? static_cast<int>(exit_interrupted) : exit_code;
}

int compare(CompareOptions options) {
  int exit_code = exit_ok;
  if (!options.density.empty()) return density(options);
  if (options.scenarios.size() < 2) throw CLI::ValidationError("SCENARIOS", "two or more are compared");
  const auto format = format_of(options, k_compare_formats);
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
    all.push_back({options.scenarios[i], &runs[i].prediction, &runs[i].loaded.scenario, &runs[i].provenance,
                   &runs[i].loaded.parameters});
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
      "  fabricast compare a.yaml b.yaml c.yaml -o what-if.html\n"
      "  fabricast compare --density tenant scenarios/vms-density.yaml");
  command->add_option("SCENARIOS", options->scenarios, "two or more scenario files; the first is the reference")
      ->required()
      ->type_name("FILE")
      ->expected(1, 26);
  command
      ->add_option("--density", options->density, "how many of this VM fit its host, and what each gets: one scenario")
      ->type_name("VM")
      ->check(not_empty());
  add_simulation_options(*command, *options);
  add_output_options(*command, *options, k_compare_formats);
  command->callback([options, &exit_code] { exit_code = compare(*options); });
}

}  // namespace fabricast::cli
