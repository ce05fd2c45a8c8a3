// SPDX-License-Identifier: Apache-2.0
// Hosts for direct tests of NCCL's decisions: GPUs in pairs below PCIe switches, HCAs anywhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "nccl/channels.hpp"
#include "tests/support/clusters.hpp"

namespace fabricast::test {

/// An HCA: its catalogue name and what it hangs below (sw0 to sw3, socket0, socket1).
struct HcaAt {
  std::string type, below;
};

struct PairedHost {
  int gpus = 8;
  std::vector<HcaAt> hcas;
  std::string gpu = "h100-sxm";
  std::string processor = "xeon-sapphirerapids";
  bool has_nvswitch = true;
  std::string pcie = "gen5 x16";
  int nvlinks = 18;

  /// GPU g hangs below switch g / 2, two switches on each socket.
  [[nodiscard]] std::string devices() const {
    std::string out;
    for (int s = 0; s < 4; ++s)
      out += "{name: sw" + std::to_string(s) + ", kind: pcie_switch, below: socket" + std::to_string(s / 2) +
             ", pcie: " + pcie + "}, ";
    for (int g = 0; g < gpus; ++g)
      out += "{name: gpu" + std::to_string(g) + ", type: " + gpu + ", below: sw" + std::to_string(g / 2) + "}, ";
    for (std::size_t h = 0; h < hcas.size(); ++h)
      out += "{name: hca" + std::to_string(h) + ", type: " + hcas[h].type + ", below: " + hcas[h].below + "}, ";
    if (has_nvswitch) out += "{name: nvs, type: nvswitch-3}";
    return out;
  }
};

/// One HCA of `type` for each GPU, or each second one, below its switch.
inline std::vector<HcaAt> beside_gpus(const std::string& type, int count) {
  std::vector<HcaAt> out;
  for (int h = 0; h < count; ++h) out.push_back({type, "sw" + std::to_string(h * 4 / count)});
  return out;
}

inline LoadedScenario cluster_of(const PairedHost& host, int count, const std::string& nccl = "{}",
                                 const std::string& workload = "{benchmark: all_reduce_perf}",
                                 const std::string& fabric = "single_switch: {switch: qm9700}",
                                 const std::string& device_file = "") {
  return scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n" +
      (device_file.empty() ? "" : "  devices: [" + device_file + "]\n") + "  hosts:\n    - {name: n, count: " +
      std::to_string(count) + ", host: {processor: " + host.processor + ", devices: [" + host.devices() + "]" +
      (host.has_nvswitch ? ", nvlinks: [{from: gpus, to: nvs, links: " + std::to_string(host.nvlinks) + "}]" : "") +
      "}}\n  fabric: {" + fabric + "}\nsoftware: {nccl: " + nccl + "}\nworkload: " + workload + "\n");
}

/// What planners get.
struct Setup {
  explicit Setup(LoadedScenario scenario)
      : loaded(std::make_unique<LoadedScenario>(std::move(scenario))),
        resources(std::make_unique<models::Resources>(loaded->topology)),
        context{loaded->topology, loaded->scenario.software, loaded->parameters, *resources} {}

  [[nodiscard]] std::vector<DeviceId> gpus(int host = 0) const {
    return loaded->topology.devices(DeviceKind::gpu, host);
  }
  std::unique_ptr<LoadedScenario> loaded;
  std::unique_ptr<models::Resources> resources;
  models::PlanContext context;
};

/// The channels among all GPUs.
inline models::nccl::ChannelGraph graph_of(const Setup& setup) {
  const auto& topology = setup.context.topology;
  return search_channels(setup.context, models::nccl::group_by_host(topology, topology.devices(DeviceKind::gpu)));
}

}  // namespace fabricast::test
