// SPDX-License-Identifier: Apache-2.0
#include "exchange/host_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "fabricast/virtualization.hpp"
#include "fabricast/vm_operations.hpp"

namespace fabricast::exchange {

namespace {

/// Links of one host, found once.
struct HostLinks {
  std::map<DeviceId, std::vector<Link>> from;
};

HostLinks links_of(const Topology& topology, int host) {
  HostLinks links;
  const auto first = topology.devices(DeviceKind::socket, host).front();
  // Links of a host are contiguous: walk from its first memory link as long as the ends stay in the host.
  for (int l = 0; l < topology.num_links(); ++l) {
    if (topology.link_in_shape(LinkId{l}) < 0) break;
    const auto link = topology.link(LinkId{l});
    const int at = topology.host_of(link.from);
    if (at > topology.host_of(first)) break;
    if (at == host) links.from[link.from].push_back(link);
  }
  return links;
}

void add_children(const Topology& topology, const HostLinks& links, TreeNode& node, std::set<DeviceId>& seen) {
  const auto it = links.from.find(node.device);
  if (it == links.from.end()) return;
  for (const auto& link : it->second) {
    if (link.kind != LinkKind::pcie && link.kind != LinkKind::socket_internal) continue;
    if (!seen.insert(link.to).second) continue;
    TreeNode child{link.to, topology.reverse(link.id), {}};
    add_children(topology, links, child, seen);
    const bool is_implicit = topology.kind(child.device) == DeviceKind::root_complex &&
                             short_name(topology, child.device).rfind("rc-", 0) == 0;
    if (is_implicit) {
      for (auto& grandchild : child.children) node.children.push_back(std::move(grandchild));
    } else {
      node.children.push_back(std::move(child));
    }
  }
}

}  // namespace

std::string short_name(const Topology& topology, DeviceId device) {
  const auto name = topology.device(device).name;
  const auto dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

std::vector<TreeNode> host_trees(const Topology& topology, int host) {
  const auto links = links_of(topology, host);
  std::vector<TreeNode> trees;
  std::set<DeviceId> seen;
  for (const auto socket : topology.devices(DeviceKind::socket, host)) {
    TreeNode root{socket, {}, {}};
    seen.insert(socket);
    add_children(topology, links, root, seen);
    trees.push_back(std::move(root));
  }
  return trees;
}

std::vector<NvlinkPair> nvlinks(const Topology& topology, int host) {
  std::vector<NvlinkPair> pairs;
  for (const auto& [device, all] : links_of(topology, host).from) {
    for (const auto& link : all) {
      const bool is_gpu = topology.kind(link.from) == DeviceKind::gpu;
      const bool is_pair = topology.kind(link.to) == DeviceKind::gpu;
      if (link.kind != LinkKind::nvlink || !is_gpu || (is_pair && link.to < link.from)) continue;
      pairs.push_back({link.from, link.to, link.lanes, link.bandwidth});
    }
  }
  std::sort(pairs.begin(), pairs.end(),
            [](const auto& x, const auto& y) { return std::pair(x.a, x.b) < std::pair(y.a, y.b); });
  return pairs;
}

std::vector<DeviceId> machine_devices(const Topology& topology, int host, DeviceKind kind) {
  if (topology.virtualization(host).vm_name.empty()) return topology.devices(kind, host);
  std::vector<DeviceId> out;
  for (const auto& device : topology.host_spec(host).devices) {
    if (device.kind != kind || !device.card.empty()) continue;
    if (const auto id = topology.find_device(topology.host_name(host) + "." + device.name)) out.push_back(*id);
  }
  return out;
}

std::vector<VmView> vms_of(const Topology& topology, int first_host) {
  std::vector<VmView> out;
  const auto& first = topology.virtualization(first_host);
  if (first.vm_name.empty()) return out;
  for (int vm = 0; vm < first.vms_on_host; ++vm) {
    const auto& one = topology.virtualization(first_host + vm);
    VmView view;
    view.name = one.vm_name;
    if (one.vcpus) view.words += fmt::format("{} vCPUs, ", *one.vcpus);
    if (one.memory) view.words += fmt::format("{}, ", to_string(*one.memory));
    view.words += held_devices(one);
    for (const auto& held : one.devices) {
      const auto id = topology.find_device(topology.host_name(first_host) + "." + held.device);
      if (id) view.held.push_back(*id);
    }
    out.push_back(std::move(view));
  }
  return out;
}

std::vector<GroupView> groups(const Topology& topology) {
  std::vector<GroupView> views;
  int first = 0;
  for (const auto& group : topology.spec().hosts) {
    const int each = num_systems(group) / group.count;
    views.push_back({first, group.count, first + num_systems(group) - each});
    first += num_systems(group);
  }
  return views;
}

std::vector<Link> network_cables(const Topology& topology) {
  std::vector<Link> cables;
  int first = topology.num_links();
  while (first > 0 && topology.link_in_shape(LinkId{first - 1}) < 0) --first;
  for (int l = first; l < topology.num_links(); l += 2) cables.push_back(topology.link(LinkId{l}));
  return cables;
}

std::vector<int> switch_tiers(const Topology& topology) {
  const auto switches = topology.devices(DeviceKind::network_switch);
  std::vector<int> tier(switches.size(), -1);
  if (switches.empty()) return tier;
  const int first = switches.front().value;
  const auto cables = network_cables(topology);
  for (const auto& cable : cables) {
    if (cable.to.value >= first && cable.from.value < first) tier[static_cast<std::size_t>(cable.to.value - first)] = 0;
    if (cable.from.value >= first && cable.to.value < first)
      tier[static_cast<std::size_t>(cable.from.value - first)] = 0;
  }
  for (bool is_changing = true; is_changing;) {
    is_changing = false;
    for (const auto& cable : cables) {
      if (cable.from.value < first || cable.to.value < first) continue;
      auto& a = tier[static_cast<std::size_t>(cable.from.value - first)];
      auto& b = tier[static_cast<std::size_t>(cable.to.value - first)];
      if (a >= 0 && b < 0) b = a + 1, is_changing = true;
      if (b >= 0 && a < 0) a = b + 1, is_changing = true;
    }
  }
  for (auto& t : tier) t = std::max(t, 0);
  return tier;
}

}  // namespace fabricast::exchange
