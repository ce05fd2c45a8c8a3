// SPDX-License-Identifier: Apache-2.0
// fabricast replay TOPOLOGY TRACE...: an application's trace on the described cluster.
#include "fabricast/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "fabricast/inputs.hpp"
#include "report/inputs.hpp"

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

/// Over ranks, of the end of each; benchmarks of calls with a root print such means, an application waits for the last.
Duration mean_end(const ReplayReport& report) {
  Duration sum;
  for (const auto& one : report.ranks) sum += one.end;
  return {sum.ps / std::max<std::int64_t>(1, std::ssize(report.ranks))};
}

std::string report_text(const ReplayReport& report, const Topology& topology, const report::InputSums& inputs) {
  const auto total = fmt::format("{:.3f} us", report.time.us()), mean = fmt::format("{:.3f} us", mean_end(report).us());
  auto out = fmt::format("# replay of {} operations of {} ranks ({}) on '{}'\n# total {}", report.num_ops,
                         report.ranks.size(), report.format, topology.name(), total);
  if (mean != total)
    out += fmt::format(
        " at the last rank, {} in the mean over ranks; OSU's tests of calls with a root print such means of calls one "
        "behind the other, a barrier between them, in which ranks wait for each other: `run` forecasts those",
        mean);
  out += "\n";
  out += "# rank  device                  end (us)   compute (us)  exchange (us)   exposed (us)\n";
  for (std::size_t i = 0; i < report.ranks.size() && i < k_most_shown; ++i) {
    const auto& one = report.ranks[i];
    out += fmt::format("{:>6}  {:<20} {:>12.3f} {:>14.3f} {:>14.3f} {:>14.3f}\n", i, one.device, one.end.us(),
                       one.compute.us(), one.exchange.us(), one.exposed.us());
  }
  if (report.ranks.size() > k_most_shown)
    out += fmt::format("# and {} more ranks: --format json\n", report.ranks.size() - k_most_shown);
  return out + "# inputs:\n" + report::inputs_text(inputs);
}

std::string report_json(const ReplayReport& report, const Topology& topology, const report::InputSums& inputs) {
  nlohmann::ordered_json out{{"schema", "fabricast/replay/1"},
                             {"tool", {{"name", "fabricast"}, {"version", k_version}}},
                             {"inputs", report::inputs_json(inputs)},
                             {"topology", topology.name()},
                             {"format", report.format},
                             {"operations", report.num_ops},
                             {"time_ps", report.time.ps},
                             {"mean_end_ps", mean_end(report).ps}};
  for (const auto& one : report.ranks) {
    nlohmann::ordered_json rank{{"device", one.device},           {"end_ps", one.end.ps},
                                {"compute_ps", one.compute.ps},   {"compute_alone_ps", one.compute_alone.ps},
                                {"exchange_ps", one.exchange.ps}, {"exposed_exchange_ps", one.exposed.ps}};
    for (const auto& end : one.op_ends) rank["operation_ends_ps"].push_back(end.ps);
    out["ranks"].push_back(std::move(rank));
  }
  return out.dump(1) + "\n";
}

/// The traces and the groups beside them, checked against each other.
std::optional<Trace> read_traces(const ReplayCommand& command, std::vector<InputFile>& inputs, int& exit_code) {
  std::vector<TraceFile> files;
  for (const auto& path : command.traces) {
    auto text = read_text(path, exit_code);
    if (!text) return std::nullopt;
    note_input(inputs, path, *text);
    files.push_back({path, std::move(*text)});
  }
  auto trace = usable(read_trace(files, command.ranks), exit_code);
  if (!trace || command.groups.empty()) return trace;
  auto text = read_text(command.groups, exit_code);
  if (!text) return std::nullopt;
  note_input(inputs, command.groups, *text);
  if (const auto checked = check_groups(*trace, {command.groups, std::move(*text)}); !checked) {
    print_faults(checked.error());
    exit_code = exit_input;
    return std::nullopt;
  }
  return trace;
}

int replay_command(const ReplayCommand& command) {
  int exit_code = exit_ok;
  const auto format = format_of(command, k_replay_formats);
  auto read = command.traces;
  if (!command.groups.empty()) read.push_back(command.groups);
  refuse_overwriting(std::vector<OutputFile>{{"-o", command.output}}, read);
  const auto loaded =
      usable(load_topology(command.topology, command.parameter_files, parse_settings(command.settings)), exit_code);
  if (!loaded) return exit_code;
  protect_inputs({{"-o", command.output}}, loaded->inputs);
  auto inputs = loaded->inputs;
  const auto trace = read_traces(command, inputs, exit_code);
  if (!trace) return exit_code;
  ReplayOptions options;
  options.software.mpi = command.mpi;
  options.ranks_per_host = command.per_host;
  const auto found = usable(replay(loaded->topology, loaded->parameters, *trace, options), exit_code);
  if (!found) return exit_code;
  const auto sums = report::sums_of(inputs);
  write_output(
      command.output,
      format == "json" ? report_json(*found, loaded->topology, sums) : report_text(*found, loaded->topology, sums),
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
