// SPDX-License-Identifier: Apache-2.0
// fabricast export FORMAT FILE -o FILE
#include "fabricast/export.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/command.hpp"
#include "cli/sources.hpp"
#include "fabricast/exchange.hpp"
#include "fabricast/scatter.hpp"

namespace fabricast::cli {

namespace {

struct ExportOptions : CommonOptions {
  std::string export_format;
  std::string file;
  std::string host;
  bool is_for_vm = false;
  std::vector<std::string> map;
  SourceOptions sources;
};

const std::vector<std::string> k_export_formats{"nccl-topo", "ibnetdiscover", "slurm",      "slurm-yaml",  "simgrid",
                                                "dot",       "perfetto",      "nccl-tuner", "vm-settings", "onyx"};

/// The tuner plugin's names of collectives that it reads.
std::string tuner_collective(Benchmark benchmark) {
  static const std::map<Benchmark, const char*> names{{Benchmark::all_reduce_perf, "allreduce"},
                                                      {Benchmark::all_gather_perf, "allgather"},
                                                      {Benchmark::reduce_scatter_perf, "reducescatter"},
                                                      {Benchmark::broadcast_perf, "broadcast"},
                                                      {Benchmark::reduce_perf, "reduce"}};
  const auto found = names.find(benchmark);
  return found == names.end() ? "" : found->second;
}

/// The first workload under a forced choice, as on a system that somebody measured.
Result<WorkloadPrediction> forced(LoadedScenario loaded, const std::string& algorithm, const std::string& protocol,
                                  int channels, std::optional<Bytes> size = {}) {
  auto& workload = loaded.scenario.workloads.front();
  loaded.scenario.workloads.resize(1);
  workload.algorithm = algorithm;
  workload.protocol = protocol;
  if (channels > 0) workload.channels = channels;
  if (size) workload.sizes = {*size};
  SimulateOptions options;
  options.with_terms = false;
  auto prediction = simulate(loaded.topology, loaded.scenario, without_scatter(loaded.parameters), options);
  if (!prediction) return tl::unexpected(prediction.error());
  return std::move(prediction->workloads.front());
}

struct Candidate {
  int channels;
  std::vector<Row> rows;
};

/// Every choice that the plugin can make. It may take channels of those that the communicator has (a large size uses
/// them all) and opens none: NCCL takes the lesser of both (scheduleCollTasksToPlan).
std::vector<Candidate> candidates_of(const LoadedScenario& loaded) {
  std::vector<Candidate> out;
  for (const auto* algorithm : {"ring", "tree", "nvls", "collnet_direct", "pat"}) {
    for (const auto* protocol : {"ll", "ll128", "simple"}) {
      const auto open = forced(loaded, algorithm, protocol, -1, Bytes{1 << 30});
      for (const int channels : {-1, 2, 4, 8, 16, 32}) {
        if (!open || channels > open->rows.front().channels) break;
        if (auto table = forced(loaded, algorithm, protocol, channels))
          out.push_back({channels, std::move(table->rows)});
      }
    }
  }
  return out;
}

/// The best choice of every size, where it beats NCCL's own by more than its band.
std::vector<TunerChoice> choose(const std::vector<Row>& own, const std::vector<Candidate>& candidates) {
  std::vector<TunerChoice> out;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Candidate* best = nullptr;
    for (const auto& one : candidates) {
      if (one.rows.size() == own.size() && (best == nullptr || one.rows[i].time < best->rows[i].time)) best = &one;
    }
    TunerChoice choice{own[i].size, "", "", -1};
    if (best != nullptr && best->rows[i].high_time < own[i].time) {
      // As NCCL runs it: NVLS over hosts is another algorithm of its cost table, nvls_tree.
      choice.algorithm = best->rows[i].algorithm;
      choice.protocol = best->rows[i].protocol;
      choice.channels = best->channels;
    }
    out.push_back(std::move(choice));
  }
  return out;
}

std::optional<std::string> tuner_file(const ExportOptions& options, int& exit_code) {
  auto loaded =
      usable(load_scenario(options.file, options.parameter_files, parse_settings(options.settings)), exit_code);
  if (!loaded) return std::nullopt;
  const auto& workload = loaded->scenario.workloads.front();
  const auto collective = tuner_collective(workload.benchmark);
  if (collective.empty()) {
    say(fmt::format(
        "{}: error: the tuner plugin knows no {}, only allreduce, allgather, reducescatter, broadcast and reduce\n",
        options.file, to_string(workload.benchmark)));
    exit_code = exit_input;
    return std::nullopt;
  }
  const auto own = usable(forced(*loaded, "auto", "auto", workload.channels.value_or(0)), exit_code);
  if (!own) return std::nullopt;
  const auto choices = choose(own->rows, candidates_of(*loaded));
  const auto changed =
      std::count_if(choices.begin(), choices.end(), [](const TunerChoice& c) { return !c.algorithm.empty(); });
  say(fmt::format("{} of {} sizes have a choice that beats NCCL's own by more than the forecast's band\n", changed,
                  choices.size()));
  return nccl_tuner_file(collective, choices, own->num_hosts, own->num_ranks,
                         {fmt::format("forecast of {} on {}: {} ranks on {} hosts", to_string(workload.benchmark),
                                      loaded->topology.name(), own->num_ranks, own->num_hosts),
                          "only sizes where the choice beats NCCL's own by more than the forecast's band",
                          "NCCL_TUNER_PLUGIN=libnccl-tuner-example.so NCCL_TUNER_CONFIG_FILE=this file"});
}

/// From a topology.
Result<std::string> topology_file(const ExportOptions& options) {
  const auto loaded = load_topology(options.file, options.parameter_files, parse_settings(options.settings));
  if (!loaded) return tl::unexpected(loaded.error());
  protect_inputs({{"-o", options.output}}, loaded->inputs);
  const auto& topology = loaded->topology;
  if (options.export_format == "ibnetdiscover") return ib_net_file(topology);
  if (options.export_format == "slurm") return slurm_topology(topology, false);
  if (options.export_format == "slurm-yaml") return slurm_topology(topology, true);
  if (options.export_format == "simgrid") return simgrid_platform(topology, loaded->parameters);
  if (options.export_format == "vm-settings") return vm_settings_file(topology, loaded->parameters);
  if (options.export_format == "onyx") return onyx_configuration(topology);
  if (options.export_format == "dot") return topology_dot(topology, topology.num_hosts() > 16);
  int host = 0;
  if (!options.host.empty()) {
    host = -1;
    std::vector<std::string> names;
    for (int h = 0; h < topology.num_hosts(); ++h) {
      names.push_back(topology.host_name(h));
      if (names.back() == options.host) host = h;
    }
    if (host < 0) {
      const auto near = nearest_name(options.host, names);
      return tl::unexpected(Diagnostics{make_error(fmt::format("'{}' has no host '{}'", topology.name(), options.host),
                                                   near.empty() ? "" : fmt::format("did you mean '{}'?", near))});
    }
  }
  return nccl_topology_xml(topology, host, loaded->parameters);
}

int export_command(ExportOptions options) {
  int exit_code = exit_ok;
  if (options.is_for_vm) {
    if (options.export_format != "nccl-topo")
      throw CLI::ValidationError("--vm", "only nccl-topo has a form for virtual machines");
    const auto sources = read_source_files(
        options.sources, options.file.empty() ? std::vector<std::string>{} : std::vector{options.file}, "", exit_code);
    if (exit_code != exit_ok) return exit_code;
    auto guest = usable(guest_topology_xml(sources, options.map), exit_code);
    if (!guest) return exit_code;
    print_faults(guest->findings);
    write_output(options.output, guest->yaml, exit_code);
    return exit_code;
  }
  if (options.file.empty()) throw CLI::ValidationError("FILE", "is required");
  refuse_overwriting(std::vector<OutputFile>{{"-o", options.output}}, std::vector{options.file});
  if (options.export_format == "nccl-tuner") {
    const auto text = tuner_file(options, exit_code);
    if (text) write_output(options.output, *text, exit_code);
    return exit_code;
  }
  if (options.export_format == "perfetto") {
    const auto run = run_scenario(options.file, options, exit_code);
    if (run)
      write_output(options.output, report::trace({run->prediction, run->loaded.scenario, run->provenance}), exit_code);
    return exit_code;
  }
  const auto text = usable(topology_file(options), exit_code);
  if (text) write_output(options.output, *text, exit_code);
  return exit_code;
}

}  // namespace

void add_export(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  auto* command = app.add_subcommand("export", "a topology or a forecast in the formats of other tools");
  command->footer(
      "nccl-topo, ibnetdiscover (for ibsim), slurm, slurm-yaml, simgrid and dot are written from a topology; "
      "vm-settings (VMX\n"
      "lines, libvirt XML, commands of the hosts) and onyx (lossless settings of the switches) too; perfetto "
      "(a trace) and\n"
      "nccl-tuner (NCCL's example tuner plugin: the best choice per size, where it wins by more than the band) from a "
      "scenario.\n"
      "nccl-topo --vm: what NCCL loads inside a VM (NCCL_TOPO_FILE), from the host's dump and the machine's "
      "devices.\n\nExamples:\n"
      "  fabricast export ibnetdiscover topologies/dgx-a100-16.yaml -o net.txt\n"
      "  fabricast export vm-settings topologies/vms-a100-roce.yaml\n"
      "  fabricast export nccl-tuner scenarios/allreduce-hgx-h100-64.yaml -o nccl_tuner.conf\n"
      "  fabricast export nccl-topo --vm --host nccl-topo.xml --vms virsh.xml -o guest.xml");
  command->add_option("FORMAT", options->export_format, "what to write")
      ->required()
      ->check(CLI::IsMember(k_export_formats).description(""))
      ->type_name(fmt::format("{}", fmt::join(k_export_formats, "|")));
  command->add_option("FILE", options->file, "topology, or scenario")->type_name("FILE");
  command->add_flag("--vm", options->is_for_vm, "nccl-topo for a virtual machine");
  command->add_option("--map", options->map, "--vm: address of a device on the host and in the guest (repeatable)")
      ->type_name("HOST=GUEST")
      ->allow_extra_args(false);
  command->add_option("--of", options->host, "nccl-topo: the host; default the first")->type_name("HOST");
  add_source_options(*command, options->sources);
  add_what_if_options(*command, *options, "parameter file", "change one value first");
  add_output_file(*command, *options);
  command->callback([options, &exit_code] { exit_code = export_command(*options); });
}

}  // namespace fabricast::cli
