// SPDX-License-Identifier: Apache-2.0
// fabricast show TOPOLOGY.yaml
#include <memory>

#include "cli/command.hpp"
#include "fabricast/exchange.hpp"

namespace fabricast::cli {

namespace {

struct ShowOptions : CommonOptions {
  std::string topology;
  std::string collapse = "auto";
};

constexpr int k_most_open_hosts = 16;

const std::vector<std::string> k_show_formats = {"text", "dot", "svg"};

int show(const ShowOptions& options) {
  int exit_code = exit_ok;
  const auto format = format_of(options, k_show_formats);
  const auto settings = parse_settings(options.settings);
  const auto loaded = usable(load_topology(options.topology, {}, settings), exit_code);
  if (!loaded) return exit_code;
  protect_inputs({{"-o", options.output}}, loaded->inputs);
  const bool is_collapsed =
      options.collapse == "on" || (options.collapse == "auto" && loaded->topology.num_hosts() > k_most_open_hosts);
  const auto text = format == "dot"   ? topology_dot(loaded->topology, is_collapsed)
                    : format == "svg" ? topology_svg(loaded->topology)
                                      : topology_text(loaded->topology);
  write_output(options.output, text, exit_code);
  return exit_code;
}

}  // namespace

void add_show(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ShowOptions>();
  auto* command = app.add_subcommand("show", "the cluster as a text tree, Graphviz DOT or SVG");
  command->footer(
      "Examples:\n  fabricast show topologies/fdr-kepler-pair.yaml\n  fabricast show topologies/dgx-a100-pair.yaml -o "
      "cluster.svg");
  command->add_option("TOPOLOGY", options->topology, "topology file (schema fabricast/topology/1)")
      ->required()
      ->type_name("FILE");
  command->add_option("--set", options->settings, "change one value first (repeatable)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command->add_option("--collapse", options->collapse, "DOT: one node per host; default auto, from 17 hosts")
      ->check(CLI::IsMember({"auto", "on", "off"}).description(""))
      ->type_name("auto|on|off");
  add_output_options(*command, *options, k_show_formats);
  command->callback([options, &exit_code] { exit_code = show(*options); });
}

}  // namespace fabricast::cli
