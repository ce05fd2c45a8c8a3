// SPDX-License-Identifier: Apache-2.0
// fabricast import [FORMAT] FILE... -o TOPOLOGY.yaml
#include "fabricast/import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/sources.hpp"

namespace fabricast::cli {

namespace {

struct ImportCommand : CommonOptions {
  std::vector<std::string> words;  ///< a format, or files
  SourceOptions sources;
  ImportOptions options;
};

int import_command(ImportCommand command) {
  int exit_code = exit_ok;
  std::string format;
  const auto& formats = source_format_names();
  if (!command.words.empty() && std::find(formats.begin(), formats.end(), command.words[0]) != formats.end()) {
    format = command.words[0];
    command.words.erase(command.words.begin());
  }
  const auto sources = read_source_files(command.sources, command.words, format, exit_code);
  std::vector<std::string> paths;
  for (const auto& source : sources) paths.push_back(source.name);
  if (exit_code == exit_ok && paths.empty())
    throw CLI::ValidationError("import", "no file to import: give --host, --fabric, --placement, --vms or FILE");
  if (exit_code != exit_ok) return exit_code;
  refuse_overwriting(std::vector<OutputFile>{{"-o", command.output}}, paths);
  auto imported = usable(import_cluster(sources, command.options), exit_code);
  if (!imported) return exit_code;
  print_faults(imported->findings);
  write_output(command.output, imported->yaml, exit_code);
  return exit_code;
}

}  // namespace

void add_source_options(CLI::App& app, SourceOptions& options) {
  const auto add = [&](const char* name, std::vector<std::string>& into, const char* what) {
    app.add_option(name, into, what)->type_name("FILE")->allow_extra_args(false);
  };
  add("--host", options.hosts, "NCCL topology, hwloc XML, lspci, nvidia-smi topo -m (repeatable)");
  add("--fabric", options.fabrics, "ibnetdiscover; alone, an Onyx switch's running configuration");
  add("--placement", options.placements, "Slurm topology.conf or topology.yaml");
  add("--vms", options.vms, "libvirt domain XML, govc JSON (repeatable)");
}

std::vector<ClusterSource> read_source_files(const SourceOptions& options, const std::vector<std::string>& any,
                                             const std::string& format, int& exit_code) {
  std::vector<ClusterSource> sources;
  const auto add = [&](const std::vector<std::string>& files, SourceRole role, const std::string& as) {
    for (const auto& path : files) {
      if (auto text = read_text(path, exit_code)) sources.push_back({path, std::move(*text), role, as});
    }
  };
  add(options.hosts, SourceRole::host, "");
  add(options.fabrics, SourceRole::fabric, "");
  add(options.placements, SourceRole::placement, "");
  add(options.vms, SourceRole::vms, "");
  add(any, SourceRole::any, format);
  return sources;
}

void add_import(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ImportCommand>();
  auto* command = app.add_subcommand("import", "topology YAML from what a cluster prints");
  command->footer(fmt::format(
      "Formats, told apart by their text: {}.\nSources of one cluster are merged; what contradicts is a warning with "
      "both "
      "places.\n\nExamples:\n"
      "  fabricast import calibration/data/h200-8gpu-nvswitch-passthrough-vm/nccl-topo.xml -o vm.yaml\n"
      "  fabricast import --host nccl.xml --host topo-m.txt --fabric ibnetdiscover.txt --placement topology.conf --vms "
      "virsh.xml -o cluster.yaml",
      fmt::join(source_format_names(), ", ")));
  command->add_option("FILES", options->words, "files of any format; a format's name before them is taken as given")
      ->type_name("[FORMAT] FILE...");
  add_source_options(*command, options->sources);
  command->add_option("--name", options->options.name, "name of the cluster; default imported")
      ->check(not_empty())
      ->type_name("NAME");
  command->add_option("--count", options->options.count, "equal hosts, where no source names them")
      ->check(whole_number(1'000'000, 1))
      ->type_name("N");
  command->add_option("--gpu", options->options.gpu, "type of GPUs that no source names")->type_name("TYPE");
  command->add_option("--processor", options->options.processor, "type of the processors")->type_name("TYPE");
  command->add_option("-o,--output", options->output, "file to write, whole or not at all; - is standard output")
      ->check(not_empty())
      ->type_name("FILE");
  command->callback([options, &exit_code] { exit_code = import_command(*options); });
}

}  // namespace fabricast::cli
