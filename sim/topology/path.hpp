// SPDX-License-Identifier: Apache-2.0
// Fields of a Path that follow from its links. `link_of` and `device_of` resolve numbers, so the same code serves host
// shapes and whole topologies.
#pragma once

#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::topology {

template <typename LinkOf, typename DeviceOf>
Path path_over(const std::vector<LinkId>& links, const LinkOf& link_of, const DeviceOf& device_of) {
  Path path;
  path.links = links;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto& link = link_of(links[i]);
    path.latency += link.latency;
    if (i == 0 || link.bandwidth < path.bottleneck) {
      path.bottleneck = link.bandwidth;
      path.bottleneck_link = links[i];
    }
    path.uses_nvlink = path.uses_nvlink || link.kind == LinkKind::nvlink;
    if (link.kind == LinkKind::socket_interconnect) ++path.socket_crossings;
    if (i + 1 == links.size()) continue;
    const auto& passed = device_of(link.to);
    path.latency += passed.forwarding_latency;
    if (passed.kind == DeviceKind::pcie_switch) ++path.pcie_switch_hops;
    if (passed.kind == DeviceKind::network_switch) ++path.network_switch_hops;
    if (passed.kind == DeviceKind::root_complex) path.root_complexes.push_back(passed.id);
  }
  return path;
}

}  // namespace fabricast::topology
