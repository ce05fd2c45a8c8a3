// SPDX-License-Identifier: Apache-2.0
// Paths inside a host: fewest hops, found once per pair of devices and kept with the shape.
#include "topology/host_shape.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <set>

#include "fabricast/virtualization.hpp"
#include "topology/path.hpp"

namespace fabricast::topology {

namespace {

/// HCAs read what they send and write what they receive; a GPU reads from and writes to host memory, and writes to
/// peers.
Dma dma_of(DeviceKind from, DeviceKind to) {
  if (to == DeviceKind::hca) return Dma::read;
  if (from == DeviceKind::hca || from == DeviceKind::gpu) return Dma::write;
  return to == DeviceKind::gpu ? Dma::read : Dma::none;
}

bool is_endpoint(DeviceKind kind) {
  return kind == DeviceKind::gpu || kind == DeviceKind::hca || kind == DeviceKind::memory;
}

using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                          boost::property<boost::edge_weight_t, double, boost::property<boost::edge_index_t, int>>>;

/// NVLink and PCIe are separate graphs; a path may not pass through a memory, an HCA or (unless asked) a GPU. Parts of
/// a card reach the slot through the card.
Graph make_graph(const HostShape& shape, int from, bool over_nvlink, bool through_gpus) {
  Graph graph(shape.devices.size());
  std::set<std::string> cards;
  for (const auto& device : shape.spec.devices)
    if (!device.card.empty()) cards.insert(device.card);
  const auto is_card = [&](DeviceId id) {
    return !cards.empty() && cards.count(shape.devices[static_cast<std::size_t>(id.value)].name) > 0;
  };
  for (const auto& link : shape.links) {
    if ((link.kind == LinkKind::nvlink) != over_nvlink) continue;
    const auto start_kind = shape.devices[static_cast<std::size_t>(link.from.value)].kind;
    const bool is_middle = link.from.value != from && is_endpoint(start_kind);
    if (is_middle && !(through_gpus && start_kind == DeviceKind::gpu) && !is_card(link.from)) continue;
    // Fewest hops; among equals the widest link, then the lowest number.
    const double weight = 1.0 + 1e-3 / (1.0 + link.bandwidth.bytes_per_s * 1e-9);
    boost::add_edge(
        static_cast<std::size_t>(link.from.value), static_cast<std::size_t>(link.to.value),
        boost::property<boost::edge_weight_t, double, boost::property<boost::edge_index_t, int>>(weight, link.id.value),
        graph);
  }
  return graph;
}

}  // namespace

int HostShape::add_device(DeviceKind kind, const std::string& name, const std::string& type, int socket,
                          Duration forwarding) {
  Device device;
  device.id = {static_cast<std::int32_t>(devices.size())};
  device.kind = kind;
  device.name = name;
  device.type = type;
  device.socket = socket;
  auto& same_kind = by_kind[static_cast<std::size_t>(kind)];
  device.ordinal = static_cast<int>(same_kind.size());
  device.forwarding_latency = forwarding;
  same_kind.push_back(device.id.value);
  devices.push_back(std::move(device));
  links_from.emplace_back();
  return devices.back().id.value;
}

void HostShape::connect(int a, int b, Link link) {
  for (const bool is_back : {false, true}) {
    link.id = {static_cast<std::int32_t>(links.size())};
    link.from = {is_back ? b : a};
    link.to = {is_back ? a : b};
    links_from[static_cast<std::size_t>(link.from.value)].push_back(link.id.value);
    links.push_back(link);
  }
}

const std::vector<std::size_t>& HostShape::tree(int from, bool over_nvlink, bool through_gpus) const {
  auto& before = trees_[{from, over_nvlink, through_gpus}];
  if (!before.empty()) return before;
  const auto graph = make_graph(*this, from, over_nvlink, through_gpus);
  before.resize(devices.size());
  std::vector<double> cost(devices.size());
  boost::dijkstra_shortest_paths(graph, static_cast<std::size_t>(from),
                                 boost::predecessor_map(before.data()).distance_map(cost.data()));
  return before;
}

std::optional<Path> HostShape::search(int from, int to, bool over_nvlink, bool through_gpus) const {
  const auto& before = tree(from, over_nvlink, through_gpus);
  if (before[static_cast<std::size_t>(to)] == static_cast<std::size_t>(to)) return std::nullopt;
  std::vector<LinkId> path;
  for (auto at = static_cast<std::size_t>(to); at != static_cast<std::size_t>(from); at = before[at]) {
    int best = -1;
    for (const int l : links_from[before[at]]) {
      const auto& link = links[static_cast<std::size_t>(l)];
      if (static_cast<std::size_t>(link.to.value) != at || (link.kind == LinkKind::nvlink) != over_nvlink) continue;
      if (best < 0 || link.bandwidth > links[static_cast<std::size_t>(best)].bandwidth) best = l;
    }
    path.push_back({best});
  }
  std::reverse(path.begin(), path.end());
  auto found = described(path);
  const auto is_pcie_device = [&](int d) {
    const auto kind = devices[static_cast<std::size_t>(d)].kind;
    return kind == DeviceKind::gpu || kind == DeviceKind::hca;
  };
  if (is_pcie_device(from) && is_pcie_device(to) && !found.root_complexes.empty()) {
    found.peer_crossings.push_back({found.root_complexes.front(), spec.processor, found.socket_crossings > 0, false});
  }
  found.dma = dma_of(devices[static_cast<std::size_t>(from)].kind, devices[static_cast<std::size_t>(to)].kind);
  return found;
}

Path HostShape::described(const std::vector<LinkId>& path) const {
  return path_over(
      path, [&](LinkId id) -> const Link& { return links[static_cast<std::size_t>(id.value)]; },
      [&](DeviceId id) -> const Device& { return devices[static_cast<std::size_t>(id.value)]; });
}

/// Peer requests that a switch below could join go up to the root complex of the sender and down again.
std::optional<Path> HostShape::redirected(int from, int to, std::optional<Path> cabled) const {
  if (!cabled) return cabled;
  if (cabled->root_complexes.empty()) {
    const int memory = by_kind[static_cast<std::size_t>(DeviceKind::memory)]
                              [static_cast<std::size_t>(devices[static_cast<std::size_t>(from)].socket)];
    const auto up = search(from, memory, false, false);
    if (!up || up->root_complexes.empty()) return cabled;
    const int turn = up->root_complexes.front().value;
    const auto first = search(from, turn, false, false);
    const auto second = search(turn, to, false, false);
    if (!first || !second) return cabled;
    auto whole = first->links;
    whole.insert(whole.end(), second->links.begin(), second->links.end());
    const auto dma = cabled->dma;
    cabled = described(whole);
    cabled->dma = dma;
    cabled->peer_crossings.push_back({{turn}, spec.processor, false, true});
  }
  for (auto& crossing : cabled->peer_crossings) crossing.is_redirected = true;
  return cabled;
}

std::optional<Path> HostShape::find_path(int from, int to, const PathOptions& options) const {
  const auto key =
      std::make_tuple(from, to, options.may_use_nvlink, options.may_forward_through_gpu, options.as_cabled);
  if (const auto it = paths_.find(key); it != paths_.end()) return it->second;
  std::optional<Path> path;
  if (from == to) {
    path = Path{};
  } else {
    const auto kind = [&](int d) { return devices[static_cast<std::size_t>(d)].kind; };
    if (options.may_use_nvlink && kind(from) == DeviceKind::gpu && kind(to) == DeviceKind::gpu)
      path = search(from, to, true, options.may_forward_through_gpu);
    if (!path) {
      path = search(from, to, false, false);
      const auto is_pcie = [&](int d) { return kind(d) == DeviceKind::gpu || kind(d) == DeviceKind::hca; };
      if (!options.as_cabled && is_pcie(from) && is_pcie(to) && spec.virtualization->redirects_peers())
        path = redirected(from, to, std::move(path));
    }
  }
  return paths_[key] = path;
}

}  // namespace fabricast::topology
