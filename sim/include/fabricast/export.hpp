// SPDX-License-Identifier: Apache-2.0
// A topology in the formats that other tools read, and NCCL's choices as the file of its example tuner plugin.
#pragma once

#include <string>
#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/topology.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

/// NCCL's topology XML of one host: PCI addresses are made up where the topology has none.
std::string nccl_topology_xml(const Topology& topology, int host, const ParameterSet& parameters);
/// The network as `ibnetdiscover` prints it and `ibsim` reads it. A fault when the topology has no fabric.
Result<std::string> ib_net_file(const Topology& topology);
/// Slurm's topology.conf or topology.yaml: switches with hosts, then what joins them.
Result<std::string> slurm_topology(const Topology& topology, bool is_yaml);
/// SimGrid platform: a host per host, its adapters as links, every cable and switch. `rank_latency`: added once per
/// message, beside cables and switches.
Result<std::string> simgrid_platform(const Topology& topology, const ParameterSet& parameters);

/// Lines that set up the virtual machines: VMX keys (ESXi) or libvirt XML (KVM), and the commands of the hosts for
/// adapters and GPUs, each with its source. A fault when there are none.
Result<std::string> vm_settings_file(const Topology& topology, const ParameterSet& parameters);
/// Onyx configuration of the lossless settings. A fault where the fabric has none, or no PFC.
Result<std::string> onyx_configuration(const Topology& topology);

/// NCCL's forecast choice for one size, and the best one.
struct TunerChoice {
  Bytes size;
  std::string algorithm, protocol;  ///< as NCCL calls them; empty: NCCL's own choice stays
  int channels = -1;                ///< -1 = NCCL's own
};
/// nccl_tuner.conf of NCCL's example plugin: collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,
/// nRanks,numPipeOps,regBuff. A size stands for all up to half way (in powers) to its neighbours. `choices` ascend.
std::string nccl_tuner_file(const std::string& collective, const std::vector<TunerChoice>& choices, int num_hosts,
                            int num_ranks, const std::vector<std::string>& comments);

}  // namespace fabricast
