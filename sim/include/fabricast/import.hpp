// SPDX-License-Identifier: Apache-2.0
// What clusters already print, to topology YAML. Each source is read into a neutral description (sim/import), sources
// of one cluster are merged, and what they contradict each other in is reported with both places. Every assumption is a
// comment of the YAML, everything that no source says is named there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabricast/diagnostic.hpp"

namespace fabricast {

/// Formats by what prints them.
enum class SourceFormat {
  nccl_topo,      ///< NCCL_TOPO_DUMP_FILE
  hwloc,          ///< lstopo XML, versions 2 and 3
  smi_topo,       ///< nvidia-smi topo -m
  lspci,          ///< lspci -nnvv (any verbosity with addresses and numbers)
  lspci_tree,     ///< lspci -tv
  ibnetdiscover,  ///< ibnetdiscover, plain form
  slurm,          ///< topology.conf or topology.yaml
  libvirt,        ///< virsh dumpxml
  govc,           ///< govc ... -json
  onyx,           ///< show running-config of an Onyx switch: alone, gives the `lossless:` part of a topology
};
std::string_view to_string(SourceFormat format);
/// All names, for messages and the command line.
const std::vector<std::string>& source_format_names();
/// The format that a text looks like; an error names what was expected.
Result<SourceFormat> detect_source(std::string_view text, const std::string& name);

/// What a source is asked for. `any`: by its format.
enum class SourceRole { any, host, fabric, placement, vms };

struct ClusterSource {
  std::string name;  ///< stands for the file in messages
  std::string text;
  SourceRole role = SourceRole::any;
  std::string format;  ///< a name of source_format_names(); empty = by its text
};

struct ImportOptions {
  std::string name = "imported";  ///< of the cluster
  int count = 0;                  ///< hosts when no source says; 0 = 1
  std::string gpu;                ///< catalogue name where no source names the GPU
  std::string processor;          ///< the same for processors
};

struct ImportedCluster {
  std::string yaml;      ///< fabricast/topology/1
  Diagnostics findings;  ///< warnings: contradictions between sources (both places), what NCCL misreads, lines lost
};

/// Merges the sources to one topology. Text that is no such format, or goes past the limits (64 MiB, 64 levels), is
/// an error with its place.
Result<ImportedCluster> import_cluster(const std::vector<ClusterSource>& sources, const ImportOptions& options = {});

/// The XML that NCCL loads inside a VM (NCCL_TOPO_FILE): the host's tree of a source, with the addresses that the
/// devices have in the guest, from a libvirt domain and `map` ("0000:18:00.0=0000:0b:00.0"). In `yaml`.
Result<ImportedCluster> guest_topology_xml(const std::vector<ClusterSource>& sources,
                                           const std::vector<std::string>& map);

}  // namespace fabricast
