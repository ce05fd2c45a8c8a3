// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "exchange/host_tree.hpp"
#include "fabricast/exchange.hpp"
#include "fabricast/vm_operations.hpp"

namespace fabricast {

namespace {

using exchange::short_name;
using exchange::TreeNode;

std::string link_words(const Topology& topology, LinkId up) {
  if (up.value < 0) return "";
  const auto link = topology.link(up);
  if (link.kind == LinkKind::pcie)
    return fmt::format("PCIe {} x{}, {}", link.generation, link.lanes, to_string(link.bandwidth));
  return fmt::format("to the mesh, {}", to_string(link.bandwidth));
}

void print_tree(const Topology& topology, const TreeNode& node, const std::string& indent, bool is_last,
                std::string& out) {
  const auto device = topology.device(node.device);
  const auto kind = device.kind == DeviceKind::gpu || device.kind == DeviceKind::hca
                        ? device.type
                        : std::string(to_string(device.kind));
  out += fmt::format("{}{} {:<6} {}  ({})\n", indent, is_last ? "`-" : "|-", short_name(topology, node.device), kind,
                     link_words(topology, node.up));
  for (std::size_t i = 0; i < node.children.size(); ++i)
    print_tree(topology, node.children[i], indent + (is_last ? "   " : "|  "), i + 1 == node.children.size(), out);
}

std::string nvlink_lines(const Topology& topology, int host) {
  std::string out;
  std::map<std::pair<std::string, int>, std::vector<std::string>> to_switch;
  std::map<std::pair<std::string, int>, Bandwidth> rates;
  for (const auto& pair : exchange::nvlinks(topology, host)) {
    if (topology.kind(pair.b) == DeviceKind::nvswitch) {
      const auto key =
          std::pair(fmt::format("{} ({})", short_name(topology, pair.b), topology.device(pair.b).type), pair.links);
      to_switch[key].push_back(short_name(topology, pair.a));
      rates[key] = pair.bandwidth;
    } else {
      out += fmt::format("  {} - {}: {} {}{}, {} each way\n", short_name(topology, pair.a),
                         short_name(topology, pair.b), pair.links, topology.gpu_link_word(pair.a),
                         pair.links == 1 ? "" : "s", to_string(pair.bandwidth));
    }
  }
  for (const auto& [key, gpus] : to_switch) {
    out += fmt::format("  {} - {}: {} NVLink{}{}, {} each way\n",
                       gpus.front() + (gpus.size() > 1 ? " .. " + gpus.back() : ""), key.first, key.second,
                       key.second == 1 ? "" : "s", gpus.size() > 1 ? " each" : "", to_string(rates[key]));
  }
  if (out.empty()) return out;
  const auto gpus = topology.devices(DeviceKind::gpu, host);
  return fmt::format("  {}\n{}", gpus.empty() ? "NVLink" : topology.gpu_link_word(gpus.front()), out);
}

std::string distance_table(const Topology& topology, int host) {
  const auto gpus = exchange::machine_devices(topology, host, DeviceKind::gpu);
  const auto hcas = exchange::machine_devices(topology, host, DeviceKind::hca);
  if (gpus.empty() || hcas.empty()) return "";
  std::string out = fmt::format("  {:<8}", "");
  for (const auto hca : hcas) out += fmt::format("{:>7}", short_name(topology, hca));
  out += "\n";
  for (const auto gpu : gpus) {
    out += fmt::format("  {:<8}", short_name(topology, gpu));
    for (const auto hca : hcas) out += fmt::format("{:>7}", to_string(topology.distance(gpu, hca)));
    out += "\n";
  }
  return "  distance GPU to HCA\n" + out;
}

/// The VMs of a machine with what each holds, and what none holds.
std::string vm_lines(const Topology& topology, int first, int count) {
  const auto& guest = topology.virtualization(first);
  if (guest.vm_name.empty()) return "";
  const auto release = guest.hypervisor == Hypervisor::esxi ? " " + to_string(guest.version) : std::string();
  const int vms = guest.vms_on_host;
  std::string out = fmt::format("  {} VM{}{} on {}{}\n", vms, vms == 1 ? "" : "s", count > 1 ? " on each host" : "",
                                to_string(guest.hypervisor), release);
  const auto all = exchange::vms_of(topology, first);
  std::size_t widest = 0;
  for (const auto& vm : all) widest = std::max(widest, vm.name.size());
  std::set<std::string> held;
  for (const auto& vm : all) {
    out += fmt::format("    {:<{}}  {}\n", vm.name, widest, vm.words);
    for (const auto device : vm.held) held.insert(short_name(topology, device));
  }
  std::string idle;
  for (const auto& device : topology.host_spec(first).devices) {
    const bool can_be_held = device.card.empty() && (device.kind == DeviceKind::gpu || device.kind == DeviceKind::hca);
    if (can_be_held && held.count(device.name) == 0) idle += (idle.empty() ? "" : ", ") + device.name;
  }
  return idle.empty() ? out : out + fmt::format("    held by no VM: {}\n", idle);
}

std::string fabric_text(const Topology& topology) {
  const auto& spec = topology.spec().fabric;
  const auto switches = topology.devices(DeviceKind::network_switch);
  const auto cables = exchange::network_cables(topology);
  if (cables.empty()) return "fabric: none\n";
  std::string out =
      fmt::format("fabric: {}, {} switches, {} cables", to_string(spec.kind), switches.size(), cables.size());
  if (spec.mtu) out += fmt::format(", MTU {} B", *spec.mtu);
  if (spec.oversubscription > 1) out += fmt::format(", oversubscribed {:g} : 1", spec.oversubscription);
  out += "\n";
  const auto tiers = exchange::switch_tiers(topology);
  std::map<int, std::map<std::string, int>> count;
  std::map<int, Duration> latency;
  for (std::size_t s = 0; s < switches.size(); ++s) {
    const auto device = topology.device(switches[s]);
    ++count[tiers[s]][device.type];
    latency[tiers[s]] = device.forwarding_latency;
  }
  for (const auto& [tier, types] : count) {
    for (const auto& [type, number] : types)
      out += fmt::format("  tier {}: {} x {}, {} per hop\n", tier, number, type, to_string(latency[tier]));
  }
  const auto hcas = topology.devices(DeviceKind::hca);
  if (hcas.size() > 1) {
    const auto path = topology.path_between_hcas(hcas.front(), hcas.back());
    if (path)
      out += fmt::format("  {} to {}: {} switch hops, {}, narrowest {}\n", topology.hardware_name(hcas.front()),
                         topology.hardware_name(hcas.back()), path->network_switch_hops, to_string(path->latency),
                         to_string(path->bottleneck));
  }
  return out;
}

}  // namespace

std::string topology_text(const Topology& topology) {
  std::size_t machines = 0;
  std::size_t gpus = 0;
  std::size_t hcas = 0;
  for (const auto& group : exchange::groups(topology)) {
    const auto count = static_cast<std::size_t>(group.count);
    machines += count;
    gpus += count * exchange::machine_devices(topology, group.first_host, DeviceKind::gpu).size();
    hcas += count * exchange::machine_devices(topology, group.first_host, DeviceKind::hca).size();
  }
  std::string out = fmt::format("topology {}: {} host{}, {} GPUs, {} HCAs\n", topology.name(), machines,
                                machines == 1 ? "" : "s", gpus, hcas);
  for (const auto& group : exchange::groups(topology)) {
    const int host = group.first_host;
    const auto& spec = topology.host_spec(host);
    const auto what = spec.type.empty() ? std::string("written out") : spec.type;
    if (group.count == 1) {
      out += fmt::format("{}: {}, {} x {}\n", topology.machine_name(host), what, spec.num_sockets, spec.processor);
    } else {
      out += fmt::format("{} .. {}: {} hosts, {}, {} x {}\n", topology.machine_name(host),
                         topology.machine_name(group.last_host), group.count, what, spec.num_sockets, spec.processor);
    }
    const auto trees = exchange::host_trees(topology, host);
    for (const auto& tree : trees) {
      const auto socket = topology.device(tree.device).socket;
      const auto memory = topology.find_device(fmt::format("{}.memory{}", topology.host_name(host), socket));
      const auto path = memory ? topology.path_in_host(*memory, tree.device) : std::nullopt;
      out += fmt::format("  {}  (memory {})\n", short_name(topology, tree.device),
                         path ? to_string(path->bottleneck) : "");
      for (std::size_t i = 0; i < tree.children.size(); ++i)
        print_tree(topology, tree.children[i], "  ", i + 1 == tree.children.size(), out);
    }
    if (trees.size() > 1) {
      const auto path = topology.path_in_host(trees[0].device, trees[1].device);
      if (path) out += fmt::format("  sockets connected at {}\n", to_string(path->bottleneck));
    }
    out += nvlink_lines(topology, host);
    out += distance_table(topology, host);
    out += vm_lines(topology, host, group.count);
  }
  return out + fabric_text(topology);
}

}  // namespace fabricast
