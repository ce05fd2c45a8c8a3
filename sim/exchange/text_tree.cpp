// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "exchange/host_tree.hpp"
#include "fabricast/exchange.hpp"

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
      out +=
          fmt::format("  {} - {}: {} NVLink{}, {} each way\n", short_name(topology, pair.a),
                      short_name(topology, pair.b), pair.links, pair.links == 1 ? "" : "s", to_string(pair.bandwidth));
    }
  }
  for (const auto& [key, gpus] : to_switch) {
    out += fmt::format("  {} .. {} - {}: {} NVLinks each, {} each way\n", gpus.front(), gpus.back(), key.first,
                       key.second, to_string(rates[key]));
  }
  return out.empty() ? out : "  NVLink\n" + out;
}

std::string distance_table(const Topology& topology, int host) {
  const auto gpus = topology.devices(DeviceKind::gpu, host);
  const auto hcas = topology.devices(DeviceKind::hca, host);
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

std::string fabric_text(const Topology& topology) {
  const auto& spec = topology.spec().fabric;
  const auto switches = topology.devices(DeviceKind::network_switch);
  const auto cables = exchange::network_cables(topology);
  if (cables.empty()) return "fabric: none\n";
  std::string out = fmt::format("fabric: {}, {} switches, {} cables, MTU {} B", to_string(spec.kind), switches.size(),
                                cables.size(), spec.mtu);
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
      out += fmt::format("  {} to {}: {} switch hops, {}, narrowest {}\n", topology.device(hcas.front()).name,
                         topology.device(hcas.back()).name, path->network_switch_hops, to_string(path->latency),
                         to_string(path->bottleneck));
  }
  return out;
}

}  // namespace

std::string topology_text(const Topology& topology) {
  std::string out = fmt::format("topology {}: {} host{}, {} GPUs, {} HCAs\n", topology.name(), topology.num_hosts(),
                                topology.num_hosts() == 1 ? "" : "s", topology.devices(DeviceKind::gpu).size(),
                                topology.devices(DeviceKind::hca).size());
  for (const auto& group : exchange::groups(topology)) {
    const int host = group.first_host;
    const auto& spec = topology.host_spec(host);
    const auto what = spec.type.empty() ? std::string("written out") : spec.type;
    if (group.count == 1) {
      out += fmt::format("{}: {}, {} x {}\n", topology.host_name(host), what, spec.num_sockets, spec.processor);
    } else {
      out +=
          fmt::format("{} .. {}: {} hosts, {}, {} x {}\n", topology.host_name(host),
                      topology.host_name(host + group.count - 1), group.count, what, spec.num_sockets, spec.processor);
    }
    const auto trees = exchange::host_trees(topology, host);
    for (const auto& tree : trees) {
      const auto memory = topology.local_memory(tree.device);
      const auto path = topology.path_in_host(memory, tree.device);
      out += fmt::format("  {}  (memory {})\n", short_name(topology, tree.device),
                         path ? to_string(path->bottleneck) : "");
      for (std::size_t i = 0; i < tree.children.size(); ++i)
        print_tree(topology, tree.children[i], "  ", i + 1 == tree.children.size(), out);
    }
    if (trees.size() > 1) {
      const auto path = topology.path_in_host(topology.device_in_host(host, DeviceKind::memory, 0),
                                              topology.device_in_host(host, DeviceKind::memory, 1));
      if (path) out += fmt::format("  sockets connected at {}\n", to_string(path->bottleneck));
    }
    out += nvlink_lines(topology, host);
    out += distance_table(topology, host);
  }
  return out + fabric_text(topology);
}

}  // namespace fabricast
