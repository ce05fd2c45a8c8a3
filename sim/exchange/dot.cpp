// SPDX-License-Identifier: Apache-2.0
// Graphviz DOT with stable names and sorted edges, so that two topologies can be compared with diff.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "exchange/host_tree.hpp"
#include "fabricast/exchange.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast {

namespace {

using exchange::TreeNode;

double pen_width(Bandwidth rate) { return std::clamp(std::log10(std::max(1e8, rate.bytes_per_s)) - 8.0, 0.5, 5.0); }

std::string edge(const std::string& a, const std::string& b, Bandwidth rate, const std::string& label) {
  return fmt::format("  \"{}\" -- \"{}\" [label=\"{}\", penwidth={:.2f}];\n", a, b, label, pen_width(rate));
}

const char* shape_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::gpu:
      return "box, style=filled, fillcolor=\"#c6f6d5\"";
    case DeviceKind::hca:
      return "box, style=filled, fillcolor=\"#bee3f8\"";
    case DeviceKind::network_switch:
      return "box3d, style=filled, fillcolor=\"#fed7aa\"";
    case DeviceKind::nvswitch:
      return "box3d, style=filled, fillcolor=\"#9ae6b4\"";
    case DeviceKind::pcie_switch:
      return "diamond";
    default:
      return "ellipse";
  }
}

void add_node(const Topology& topology, DeviceId id, std::string& out) {
  const auto device = topology.device(id);
  out += fmt::format("    \"{}\" [shape={}, label=\"{}\\n{}\"];\n", topology.hardware_name(id), shape_of(device.kind),
                     exchange::short_name(topology, id),
                     device.type.empty() ? std::string(to_string(device.kind)) : device.type);
}

void add_tree(const Topology& topology, const TreeNode& node, const std::string& parent, std::string& nodes,
              std::vector<std::string>& edges) {
  add_node(topology, node.device, nodes);
  const auto name = topology.hardware_name(node.device);
  if (!parent.empty()) {
    const auto link = topology.link(node.up);
    edges.push_back(edge(parent, name, link.bandwidth,
                         link.kind == LinkKind::pcie ? fmt::format("gen{} x{}", link.generation, link.lanes)
                                                     : to_string(link.bandwidth)));
  }
  for (const auto& child : node.children) add_tree(topology, child, name, nodes, edges);
}

}  // namespace

std::string topology_dot(const Topology& topology, bool is_collapsed) {
  std::string out = fmt::format(
      "graph \"{}\" {{\n  graph [rankdir=BT, nodesep=0.3];\n  node [fontname=\"Helvetica\", fontsize=10];\n  edge "
      "[fontname=\"Helvetica\", fontsize=8];\n",
      topology.name());
  std::vector<std::string> edges;
  for (int host = 0; host < topology.num_hosts(); ++host) {
    const auto& name = topology.machine_name(host);
    const auto& guest = topology.virtualization(host);
    if (!guest.vm_name.empty() && !is_collapsed) {
      out += fmt::format("  \"{}\" [shape=note, label=\"VM {}\"];\n", topology.host_name(host), guest.vm_name);
      for (const auto& held : guest.devices)
        edges.push_back(
            fmt::format("  \"{}\" -- \"{}.{}\" [style=dashed];\n", topology.host_name(host), name, held.device));
    }
    const auto socket = topology.devices(DeviceKind::socket, host).front();
    if (topology.hardware(socket) != socket) continue;  // drawn with the first VM of the machine
    if (is_collapsed) {
      out += fmt::format("  \"{}\" [shape=box, label=\"{}\\n{} GPUs\"];\n", name, name,
                         exchange::machine_devices(topology, host, DeviceKind::gpu).size());
      continue;
    }
    std::string nodes;
    const auto trees = exchange::host_trees(topology, host);
    for (const auto& tree : trees) add_tree(topology, tree, "", nodes, edges);
    for (std::size_t s = 1; s < trees.size(); ++s) {
      const auto path = topology.path_in_host(trees[0].device, trees[s].device);
      if (path && path->links.size() == 1)
        edges.push_back(edge(topology.hardware_name(trees[0].device), topology.hardware_name(trees[s].device),
                             path->bottleneck, to_string(path->bottleneck)));
    }
    for (const auto nvswitch : topology.devices(DeviceKind::nvswitch, host)) add_node(topology, nvswitch, nodes);
    for (const auto& pair : exchange::nvlinks(topology, host))
      edges.push_back(edge(topology.hardware_name(pair.a), topology.hardware_name(pair.b), pair.bandwidth,
                           fmt::format("NV{}", pair.links)));
    out += fmt::format("  subgraph \"cluster_{}\" {{\n    label=\"{}\";\n{}  }}\n", name, name, nodes);
  }
  for (const auto one : topology.devices(DeviceKind::network_switch)) {
    std::string node;
    add_node(topology, one, node);
    out += node.substr(2);
  }
  std::map<std::pair<std::string, std::string>, std::pair<int, Bandwidth>> cables;
  for (const auto& cable : exchange::network_cables(topology)) {
    const auto end = [&](DeviceId id) {
      return is_collapsed && topology.kind(id) == DeviceKind::hca ? topology.machine_name(topology.host_of(id))
                                                                  : topology.hardware_name(id);
    };
    auto& known = cables[{end(cable.from), end(cable.to)}];
    ++known.first;
    known.second = cable.bandwidth;
  }
  for (const auto& [ends, cable] : cables) {
    edges.push_back(edge(ends.first, ends.second, cable.second * cable.first,
                         fmt::format("{}{:.0f} Gb/s", cable.first > 1 ? fmt::format("{} x ", cable.first) : "",
                                     cable.second.bytes_per_s * 8e-9)));
  }
  std::sort(edges.begin(), edges.end());
  for (const auto& one : edges) out += one;
  return out + "}\n";
}

}  // namespace fabricast
