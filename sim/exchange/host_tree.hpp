// SPDX-License-Identifier: Apache-2.0
// The PCIe tree of one host, as the pictures draw it.
#pragma once

#include <string>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::exchange {

struct TreeNode {
  DeviceId device;
  LinkId up;                       ///< link to the parent; value -1 at a socket
  std::vector<TreeNode> children;  ///< in ordinal order
};

/// One tree per socket. Root complexes that were made for a single device are left out: the device hangs at the socket.
std::vector<TreeNode> host_trees(const Topology& topology, int host);

/// Name without the host: gpu0.
std::string short_name(const Topology& topology, DeviceId device);

/// NVLinks of a host: between GPUs one entry per pair; towards an NVSwitch one entry per GPU.
struct NvlinkPair {
  DeviceId a, b;
  int links = 0;
  Bandwidth bandwidth;
};
std::vector<NvlinkPair> nvlinks(const Topology& topology, int host);

/// Devices of the machine a host is or is a VM of, whoever holds them.
std::vector<DeviceId> machine_devices(const Topology& topology, int host, DeviceKind kind);

/// The VMs of the machine that `host` is or is a VM of, when they were described one by one: name, what they get, and
/// the machine's devices that they hold.
struct VmView {
  std::string name;
  std::string words;  ///< "16 vCPUs, 64 GiB, gpu0 by passthrough"
  std::vector<DeviceId> held;
};
std::vector<VmView> vms_of(const Topology& topology, int first_host);

/// First host of each group and how many there are.
struct GroupView {
  int first_host = 0;
  int count = 1;      ///< machines
  int last_host = 0;  ///< first VM of the last machine

  /// First host of the group's machine number `machine`.
  [[nodiscard]] int host_of(int machine) const {
    return first_host + (count > 1 ? (last_host - first_host) / (count - 1) * machine : 0);
  }
};
std::vector<GroupView> groups(const Topology& topology);

/// Distance of a switch from the hosts: leaves 0, what is above them 1, ...
std::vector<int> switch_tiers(const Topology& topology);

/// All network links once per cable direction a -> b with a < b.
std::vector<Link> network_cables(const Topology& topology);

}  // namespace fabricast::exchange
