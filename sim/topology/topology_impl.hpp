// SPDX-License-Identifier: Apache-2.0
// State of a built topology: hosts placed one after another, each with the number of its shape, then the network.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/topology.hpp"
#include "topology/host_shape.hpp"
#include "topology/network.hpp"
#include "topology/spread_table.hpp"

namespace fabricast {

using topology::HostShape;

struct Topology::Impl {
  struct Host {
    std::string name;
    int shape = 0;
    int first_device = 0;
    int first_link = 0;
    int machine = 0;
  };
  /// A box with its VMs, which follow each other in `hosts` and share the links of the first.
  struct Machine {
    std::string name;
    int first_host = 0;
  };
  TopologySpec spec;
  std::vector<HostShape> shapes;
  std::vector<Host> hosts;
  std::vector<Machine> machines;
  int num_host_devices = 0;
  int num_host_links = 0;
  std::vector<Device> switches;
  std::vector<Link> network_links;
  std::vector<DeviceId> hcas;    ///< network node -> device
  std::vector<int> node_of_hca;  ///< [device] -> network node, -1 for others; of hosts up to the last with an HCA
  std::map<std::string, std::map<std::string, std::string, std::less<>>, std::less<>> attributes;  ///< by type and key
  std::set<std::string, std::less<>> plain_adapters;  ///< types without RDMA
  bool is_infiniband = false;                         ///< every switch
  std::shared_ptr<topology::Network> network;
  topology::SpreadTable spread;
  std::map<std::string, int, std::less<>> host_by_name;

  [[nodiscard]] int host_of_device(int device) const {
    const auto it = std::upper_bound(hosts.begin(), hosts.end(), device,
                                     [](int d, const Host& host) { return d < host.first_device; });
    return static_cast<int>(it - hosts.begin()) - 1;
  }
  [[nodiscard]] int host_of_link(int link) const {
    const auto it =
        std::upper_bound(hosts.begin(), hosts.end(), link, [](int l, const Host& host) { return l < host.first_link; });
    return first_of(static_cast<int>(it - hosts.begin()) - 1);
  }
  /// The first host of the same machine.
  [[nodiscard]] int first_of(int host) const {
    return machines[static_cast<std::size_t>(hosts[static_cast<std::size_t>(host)].machine)].first_host;
  }
  [[nodiscard]] const HostShape& shape_of(int host) const {
    return shapes[static_cast<std::size_t>(hosts[static_cast<std::size_t>(host)].shape)];
  }

  /// Its node in the network, -1 when there is none.
  [[nodiscard]] int node_of(DeviceId hca) const {
    const auto index = static_cast<std::size_t>(hca.value);
    return network && index < node_of_hca.size() ? node_of_hca[index] : -1;
  }

  /// Empty when the catalogue says nothing of it.
  [[nodiscard]] std::string_view attribute(std::string_view type, std::string_view key) const {
    const auto words = attributes.find(type);
    if (words == attributes.end()) return {};
    const auto word = words->second.find(key);
    return word == words->second.end() ? std::string_view() : word->second;
  }
  /// A path of the shape, renumbered for one host.
  [[nodiscard]] Path placed(Path path, int host) const {
    const auto& where = hosts[static_cast<std::size_t>(host)];
    for (auto& link : path.links) link.value += where.first_link;
    path.bottleneck_link.value += where.first_link;
    for (auto& crossing : path.peer_crossings) crossing.root_complex.value += where.first_device;
    for (auto& rc : path.root_complexes) rc.value += where.first_device;
    return path;
  }
};

}  // namespace fabricast
