// SPDX-License-Identifier: Apache-2.0
// Building and checking a Network, and its shortest paths.
#include "packet/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>

#include "base/assert.hpp"
#include "packet/congestion.hpp"
#include "packet/headroom.hpp"
#include "packet/time_range.hpp"

namespace fabricast::packet {

namespace {

NodeId add_node(Network& network, NodeKind kind, std::string name, std::uint32_t config) {
  network.nodes.push_back({kind, config, std::move(name), {}});
  return NodeId{static_cast<std::uint32_t>(network.nodes.size() - 1)};
}

bool is_switch(const Network& network, std::uint32_t node) {
  return network.nodes[node].kind == NodeKind::packet_switch;
}

// Hops from every switch to `destination` over switches; -1 = unreachable.
std::vector<int> distances_to(const Network& network, std::uint32_t destination) {
  std::vector<int> distance(network.nodes.size(), -1);
  std::vector<std::uint32_t> frontier{destination};
  distance[destination] = 0;
  for (std::size_t next = 0; next < frontier.size(); ++next) {
    const auto at = frontier[next];
    for (const auto port : network.nodes[at].ports) {
      const auto neighbour = index(network.ports[index(network.ports[index(port)].peer)].node);
      if (!is_switch(network, neighbour) || distance[neighbour] >= 0) continue;
      distance[neighbour] = distance[at] + 1;
      frontier.push_back(neighbour);
    }
  }
  return distance;
}

bool has_hosts(const Network& network, std::uint32_t node) {
  return std::ranges::any_of(network.nodes[node].ports, [&](PortId port) {
    return network.node_of(network.ports[index(port)].peer).kind == NodeKind::host;
  });
}

/// Times that the engine adds to its clock.
void check_steps(std::initializer_list<Duration> steps, const auto& error) {
  for (const auto& step : steps)
    if (step.ps > k_longest_step) error("a time is above 13 days", "it lies between picoseconds and seconds");
}

void check_switch_config(const SwitchConfig& config, Diagnostics& out) {
  const auto error = [&](const std::string& what, const std::string& hint) {
    out.push_back(make_error(fmt::format("switch configuration '{}': {}", config.name, what), hint));
  };
  if (config.cell.value < 1) error("the cell is smaller than 1 B", "give the cell size of the chip, 96 B to 256 B");
  if (config.buffer.value < 1) error("the buffer has no memory", "give the size of the packet memory");
  if (!config.pfc.xoff && !(config.pfc.alpha > 0)) error("alpha is not positive", "alpha lies between 1/128 and 64");
  if (config.pfc.pause_quanta > 65'535) error("more than 65,535 pause quanta", "the field has 16 bits");
  if (config.credits.input_speedup < 1) error("the input speed-up is below 1", "1 to 4 packets at a time");
  if (config.buffer > k_largest_buffer) error("the buffer is larger than 1 PiB", "give the size of the packet memory");
  if (config.pfc.alpha > k_largest_alpha) error("alpha is above 4096", "alpha lies between 1/128 and 64");
  check_steps({config.latency, config.pfc.refresh_interval, config.pfc.pause_response, config.credits.credit_interval,
               config.credits.turnaround},
              error);
  for (const auto& traffic_class : config.classes) {
    if (!traffic_class.strict && traffic_class.weight == 0)
      error("a class has weight 0 and is not strict", "give it a weight");
    if (traffic_class.ecn.enabled && traffic_class.ecn.max < traffic_class.ecn.min)
      error("ECN marks with max below min", "exchange them");
  }
}

void check_hca_config(const HcaConfig& config, Diagnostics& out) {
  const auto error = [&](const std::string& what, const std::string& hint) {
    out.push_back(make_error(fmt::format("HCA configuration '{}': {}", config.name, what), hint));
  };
  const auto& transport = config.transport;
  if (transport.mtu.value < 1) error("the MTU is not positive", "256 B to 4096 B");
  const auto controls = congestion_control_names();
  if (std::ranges::find(controls, transport.congestion_control) == controls.end())
    error(fmt::format("there is no congestion control '{}'", transport.congestion_control),
          fmt::format("one of: {}", fmt::join(controls, ", ")));
  const auto& dcqcn = transport.dcqcn;
  const bool has_dcqcn = transport.congestion_control == "dcqcn";
  if (has_dcqcn && (dcqcn.alpha_interval.ps < 1 || dcqcn.decrease_interval.ps < 1 || dcqcn.increase_timer.ps < 1))
    error("a timer of DCQCN is not positive", "alpha_interval, decrease_interval and increase_timer are at least 1 ps");
  if (has_dcqcn && !(dcqcn.minimum >= k_least_rate))
    error("the minimum rate of DCQCN is below 1 kB/s", "give a rate from 1 kB/s on");
  check_steps(
      {dcqcn.cnp_interval, dcqcn.alpha_interval, dcqcn.decrease_interval, dcqcn.increase_timer, transport.timeout,
       config.packet_gap, config.message_gap, config.pause_response, config.send_latency, config.receive_latency},
      error);
  if (transport.ack_every < 1) error("no packet asks for an acknowledgement", "ack_every is at least 1");
  if (transport.window.value > 0 && transport.window < transport.mtu)
    error("the window is smaller than one packet", "a window holds at least the MTU");
  if (transport.cnp_class < 0 || transport.cnp_class >= k_num_classes || transport.ack_class >= k_num_classes)
    error("there is no such traffic class", "classes are 0 to 7");
}

void check_link(const Network& network, PortId port, Diagnostics& out) {
  const auto& link = network.ports[index(port)];
  if (!(link.rate >= k_least_rate))
    out.push_back(make_error(fmt::format("link {} has a rate of {}", network.link_name(port), to_string(link.rate)),
                             "the packet engine takes rates from 1 kB/s on"));
  if (link.delay.ps > k_longest_step)
    out.push_back(make_error(fmt::format("link {} has a delay above 13 days", network.link_name(port)),
                             "a metre of cable takes 5 ns"));
}

// Every switch with hosts must reach every other one; says so once per pair, up to a few.
void check_routes(const Network& network, Diagnostics& out) {
  constexpr std::size_t k_most = 5;
  std::vector<std::uint32_t> leaves;
  for (std::uint32_t node = 0; node < network.nodes.size(); ++node)
    if (is_switch(network, node) && has_hosts(network, node)) leaves.push_back(node);
  std::size_t found = 0;
  for (const auto from : leaves) {
    for (const auto to : leaves) {
      if (from == to || !network.routing.candidates(NodeId{from}, NodeId{to}).empty()) continue;
      if (++found > k_most) return;
      out.push_back(make_error(
          fmt::format("no route from switch '{}' to switch '{}'", network.nodes[from].name, network.nodes[to].name),
          "join them by links, directly or over other switches"));
    }
  }
}

// The shared pool of a switch after reserved space and headroom of all its ports and lossless classes.
void check_memory(const Network& network, const Node& node, Diagnostics& out) {
  const auto& config = network.switch_configs[node.config];
  if (config.flow_control != FlowControl::pfc) return;
  Bytes taken{};
  for (const auto port : node.ports) {
    const auto unprotected = network.ports[index(port)].unprotected;
    std::int64_t lossless = 0;
    for (std::size_t c = 0; c < config.classes.size(); ++c)
      lossless += config.classes[c].lossless && (unprotected >> c & 1) == 0 ? 1 : 0;
    taken += lossless * (headroom_of(network, port) + config.reserved);
  }
  if (taken >= config.buffer)
    out.push_back(make_error(fmt::format("switch '{}' needs {} for headroom and reserved space and has a buffer of {}",
                                         node.name, to_string(taken), to_string(config.buffer)),
                             "use shorter cables, fewer lossless classes or less reserved space"));
}

}  // namespace

std::uint32_t Routing::group_for(std::vector<PortId> egress) {
  // Neighbouring destinations mostly share their ports: look at the groups made last.
  const std::size_t oldest = groups_.size() > 8 ? groups_.size() - 8 : 0;
  for (std::size_t group = groups_.size(); group-- > oldest;)
    if (groups_[group] == egress) return static_cast<std::uint32_t>(group);
  groups_.push_back(std::move(egress));
  return static_cast<std::uint32_t>(groups_.size() - 1);
}

void Routing::set(NodeId at, NodeId destination_switch, std::vector<PortId> egress) {
  const std::size_t row = index(at);
  const std::size_t column = index(destination_switch);
  if (group_of_.size() <= row) group_of_.resize(row + 1);
  if (group_of_[row].size() <= column) group_of_[row].resize(column + 1);
  group_of_[row][column] = group_for(std::move(egress));
}

void Routing::set_behind(PortId arrival, NodeId destination_switch, std::vector<PortId> egress) {
  behind_[{index(arrival), index(destination_switch)}] = group_for(std::move(egress));
}

const std::vector<PortId>& Routing::candidates(NodeId at, NodeId destination_switch) const {
  const std::size_t row = index(at);
  const std::size_t column = index(destination_switch);
  if (row >= group_of_.size() || column >= group_of_[row].size()) return groups_.front();
  return groups_[group_of_[row][column]];
}

const std::vector<PortId>& Routing::candidates(NodeId at, NodeId destination_switch, PortId arrival) const {
  if (!behind_.empty()) {
    const auto own = behind_.find({index(arrival), index(destination_switch)});
    if (own != behind_.end()) return groups_[own->second];
  }
  return candidates(at, destination_switch);
}

NodeId Network::add_switch(std::string name, std::uint32_t config) {
  return add_node(*this, NodeKind::packet_switch, std::move(name), config);
}

NodeId Network::add_host(std::string name, std::uint32_t config) {
  return add_node(*this, NodeKind::host, std::move(name), config);
}

std::pair<PortId, PortId> Network::connect(NodeId a, NodeId b, Bandwidth rate, Duration delay) {
  const PortId first{static_cast<std::uint32_t>(ports.size())};
  const PortId second{static_cast<std::uint32_t>(ports.size() + 1)};
  ports.push_back({a, second, rate, delay, {}});
  ports.push_back({b, first, rate, delay, {}});
  nodes[index(a)].ports.push_back(first);
  nodes[index(b)].ports.push_back(second);
  return {first, second};
}

std::string Network::link_name(PortId port) const {
  return fmt::format("{} -> {}", node_of(port).name, node_of(ports[index(port)].peer).name);
}

Routing route_by_shortest_paths(const Network& network) {
  Routing routing;
  const auto num_nodes = static_cast<std::uint32_t>(network.nodes.size());
  for (std::uint32_t destination = 0; destination < num_nodes; ++destination) {
    if (!is_switch(network, destination) || !has_hosts(network, destination)) continue;
    const auto distance = distances_to(network, destination);
    for (std::uint32_t at = 0; at < num_nodes; ++at) {
      if (!is_switch(network, at) || distance[at] <= 0) continue;
      std::vector<PortId> egress;
      for (const auto port : network.nodes[at].ports) {
        const auto neighbour = index(network.ports[index(network.ports[index(port)].peer)].node);
        if (is_switch(network, neighbour) && distance[neighbour] == distance[at] - 1) egress.push_back(port);
      }
      routing.set(NodeId{at}, NodeId{destination}, std::move(egress));
    }
  }
  return routing;
}

Diagnostics validate(const Network& network) {
  Diagnostics out;
  for (const auto& config : network.switch_configs) check_switch_config(config, out);
  for (const auto& config : network.hca_configs) check_hca_config(config, out);
  for (const auto& node : network.nodes) {
    const auto num_configs = node.kind == NodeKind::host ? network.hca_configs.size() : network.switch_configs.size();
    if (node.config >= num_configs)
      out.push_back(
          make_error(fmt::format("node '{}' uses configuration {} of {}", node.name, node.config, num_configs)));
  }
  for (std::uint32_t port = 0; port < network.ports.size(); ++port) check_link(network, PortId{port}, out);
  if (has_errors(out)) return out;
  check_routes(network, out);
  for (const auto& node : network.nodes)
    if (node.kind == NodeKind::packet_switch) check_memory(network, node, out);
  for (std::uint32_t number = 0; number < network.ports.size(); ++number) {
    const PortId port{number};
    if (network.node_of(port).kind == NodeKind::host) continue;
    const auto& config = network.switch_configs[network.node_of(port).config];
    if (config.flow_control != FlowControl::pfc) continue;
    const auto needed = worst_case_headroom(network, port, largest_frame(network));
    if (headroom_of(network, port) >= needed) continue;
    auto warning =
        make_error(fmt::format("port {} has a headroom of {} per lossless class and needs {}", network.link_name(port),
                               to_string(headroom_of(network, port)), to_string(needed)),
                   "lossless traffic will be dropped when it pauses");
    warning.severity = Severity::warning;
    out.push_back(std::move(warning));
  }
  return out;
}

}  // namespace fabricast::packet
