// SPDX-License-Identifier: Apache-2.0
// fabricast replay TOPOLOGY TRACE...: an application's trace on the described cluster.
#include "fabricast/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"

namespace fabricast::cli {

namespace {

struct ReplayCommand : CommonOptions {
  std::string topology;
  std::vector<std::string> traces;
  std::string groups;
  int ranks = 0;
  int per_host = 0;
  std::string mpi;
};

const std::vector<std::string> k_replay_formats = {"text", "json"};
constexpr std::size_t k_most_shown = 16;

std::string report_text(const ReplayReport& report, const Topology& topology) {
  auto out = fmt::format(
      "# replay of {} operations of {} ranks ({}) on '{}'\n# total {:.3f} us\n"
      "# rank  device                  end (us)   compute (us)  exchange (us)   exposed (us)\n",
      report.num_ops, report.ranks.size(), report.format, topology.name(), report.time.us());
  for (std::size_t i = 0; i < report.ranks.size() && i < k_most_shown; ++i) {
    const auto& one = report.ranks[i];
    out += fmt::format("{:>6}  {:<20} {:>12.3f} {:>14.3f} {:>14.3f} {:>14.3f}\n", i, one.device, one.end.us(),
                       one.compute.us(), one.exchange.us(), one.exposed.us());
  }
  if (report.ranks.size() > k_most_shown)
    out += fmt::format("# and {} more ranks: --format json\n", report.ranks.size() - k_most_shown);
  return out;
}

std::string report_json(const ReplayReport& report, const Topology& topology) {
  nlohmann::ordered_json out{{"schema", "fabricast/replay/1"},
                             {"topology", topology.name()},
                             {"format", report.format},
                             {"operations", report.num_ops},
                             {"time_ps", report.time.ps}};
  for (const auto& one : report.ranks) {
    nlohmann::ordered_json rank{{"device", one.device},           {"end_ps", one.end.ps},
                                {"compute_ps", one.compute.ps},   {"compute_alone_ps", one.compute_alone.ps},
                                {"exchange_ps", one.exchange.ps}, {"exposed_exchange_ps", one.exposed.ps}};
    for (const auto& end : one.op_ends) rank["operation_ends_ps"].push_back(end.ps);
    out["ranks"].push_back(std::move(rank));
  }
  return out.dump(1) + "\n";
}

int replay_command(const ReplayCommand& command) {
  int exit_code = exit_ok;
  const auto format = format_of(command, k_replay_formats);
  const auto loaded = load_topology(command.topology, command.parameter_files, parse_settings(command.settings));
  if (!loaded) {
    print_faults(loaded.error());
    return exit_input;
  }
  protect_inputs({{"-o", command.output}}, loaded->inputs);
  refuse_overwriting(std::vector<OutputFile>{{"-o", command.output}}, command.traces);
  if (!command.groups.empty())
    refuse_overwriting(std::vector<OutputFile>{{"-o", command.output}}, std::vector<std::string>{command.groups});
  std::vector<TraceFile> files;
  for (const auto& path : command.traces) {
    auto text = read_text(path, exit_code);
    if (!text) return exit_code;
    files.push_back({path, std::move(*text)});
  }
  const auto trace = read_trace(files, command.ranks);
  if (!trace) {
    print_faults(trace.error());
    return exit_input;
  }
  if (!command.groups.empty()) {
    auto text = read_text(command.groups, exit_code);
    if (!text) return exit_code;
    if (const auto checked = check_groups(*trace, {command.groups, std::move(*text)}); !checked) {
      print_faults(checked.error());
      return exit_input;
    }
  }
  ReplayOptions options;
  options.software.mpi = command.mpi;
  options.ranks_per_host = command.per_host;
  const auto report = replay(loaded->topology, loaded->parameters, *trace, options);
  if (!report) {
    print_faults(report.error());
    return exit_input;
  }
  write_output(command.output,
               format == "json" ? report_json(*report, loaded->topology) : report_text(*report, loaded->topology),
               exit_code);
  return exit_code;
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReplayCommand>();
  auto* command = app.add_subcommand("replay", "an application's trace (Chakra, GOAL) on the described cluster");
  command->footer(
      "TRACE: MLCommons Chakra execution traces, one file per rank (protobuf .et, or chakra_jsonizer's JSON), whose "
      "rank "
      "i is\nGPU i; or one GOAL schedule in text, whose ranks are processes.\n\nExamples:\n"
      "  fabricast replay topologies/dgx-a100-pair.yaml scenarios/traces/ddp-step.json --ranks 16\n"
      "  fabricast replay topologies/dgx-a100-16.yaml scenarios/traces/ring-all-reduce.goal --ranks-per-host 1");
  command->add_option("TOPOLOGY", options->topology, "topology file")->required()->type_name("FILE");
  command->add_option("TRACE", options->traces, "traces")->required()->type_name("FILE...");
  command->add_option("--ranks", options->ranks, "equal ranks of one Chakra trace")
      ->check(whole_number(65'536, 1))
      ->type_name("N");
  command
      ->add_option("--groups", options->groups,
                   "ranks of each communicator group of Chakra traces, JSON {\"NAME\": [RANK, ...]}: checked")
      ->type_name("FILE");
  command->add_option("--ranks-per-host", options->per_host, "of a GOAL schedule; default: as MPI places them")
      ->check(whole_number(1024, 1))
      ->type_name("N");
  command->add_option("--mpi", options->mpi, "profile of a GOAL schedule's messages (`fabricast list profiles`)")
      ->type_name("NAME");
  add_what_if_options(*command, *options, "parameter file", "change one value of the topology");
  add_output_options(*command, *options, k_replay_formats);
  command->callback([options, &exit_code] { exit_code = replay_command(*options); });
}

}  // namespace fabricast::cli
