// SPDX-License-Identifier: Apache-2.0
// fabricast schema KIND
#include <memory>

#include "cli/command.hpp"

namespace fabricast::cli {

void add_schema(CLI::App& app, int& exit_code) {
  auto kind = std::make_shared<std::string>();
  auto* command = app.add_subcommand("schema", "print the JSON Schema of a file kind, for editors");
  command->footer("Examples:\n  fabricast schema topology > topology.schema.json\n  fabricast schema scenario");
  command->add_option("KIND", *kind, "topology, scenario, parameters, device, calibration, network, plan or cost")
      ->required()
      ->check(CLI::IsMember({"topology", "scenario", "parameters", "device", "calibration", "network", "plan", "cost"})
                  .description(""));
  command->callback([kind, &exit_code] { write_output("-", json_schema(*kind), exit_code); });
}

}  // namespace fabricast::cli
