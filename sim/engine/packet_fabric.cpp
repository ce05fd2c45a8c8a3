// SPDX-License-Identifier: Apache-2.0
#include "engine/packet_fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "base/assert.hpp"
#include "engine/switch_config.hpp"

namespace fabricast::engine {

namespace {

constexpr std::int64_t k_header_bytes = 72;  ///< on the wire, what a cut-through switch reads before it forwards

class FabricMaker {
 public:
  explicit FabricMaker(const PacketFabricInput& input)
      : input_(input),
        settings_(lossless_settings(input.topology, input.parameters)),
        switches_(input.topology, input.parameters) {
    for (int l = input.topology.first_network_link(); l < input.topology.num_links(); ++l)
      fastest_ = std::max(fastest_, input.topology.link_bandwidth(LinkId{l}).bytes_per_s);
    protect_somewhere();
  }

  PacketFabric make() {
    const auto& topology = input_.topology;
    for (const auto id : topology.devices(DeviceKind::network_switch)) add_switch(topology.device(id));
    for (const auto hca : input_.hcas) add_hca(hca);
    connect_all();
    set_routes();
    return std::move(out_);
  }

 private:
  /// Switches know every priority that any cable protects; cables take away those of one end alone.
  void protect_somewhere() {
    if (settings_.flow_control != FlowControl::pfc || settings_.port_pfc.empty()) return;
    std::set<int> somewhere;
    for (int l = input_.topology.first_network_link(); l < input_.topology.num_links(); l += 2) {
      for (const int priority : cable_priorities(input_.topology, settings_, input_.topology.link(LinkId{l})))
        somewhere.insert(priority);
    }
    protected_somewhere_.assign(somewhere.begin(), somewhere.end());
  }

  [[nodiscard]] std::uint8_t unprotected(const Link& link) const {
    unsigned out = 0;
    for (const int priority : protected_somewhere_) out |= 1U << priority;
    if (out == 0) return 0;
    for (const int priority : cable_priorities(input_.topology, settings_, link)) out &= ~(1U << priority);
    return static_cast<std::uint8_t>(out);
  }

  [[nodiscard]] packet::SwitchConfig config_of_type(const std::string& type) {
    auto own = switches_.of(type);
    if (settings_.flow_control == FlowControl::pfc && !settings_.port_pfc.empty()) own.pfc = protected_somewhere_;
    return switch_config(own, Bandwidth{fastest_});
  }

  void add_switch(const Device& device) {
    auto& configs = out_.network.switch_configs;
    const auto [it, is_new] = config_of_switch_.try_emplace({device.type, device.forwarding_latency.ps},
                                                            static_cast<std::uint32_t>(configs.size()));
    if (is_new) {
      configs.push_back(config_of_type(device.type));
      // Data sheets count from the first bit in to the first bit out, the packet engine from the end of the header.
      const auto header = transfer_time(Bytes{k_header_bytes}, Bandwidth{fastest_});
      configs.back().latency = configs.back().cut_through ? std::max(Duration{}, device.forwarding_latency - header)
                                                          : device.forwarding_latency;
    }
    node_of_[device.id.value] = out_.network.add_switch(device.name, it->second);
  }

  void add_hca(DeviceId hca) {
    const auto device = input_.topology.device(hca);
    auto& configs = out_.network.hca_configs;
    const auto cables = input_.topology.uplinks(hca);
    const auto& there = cables.empty() ? settings_ : switches_.of(input_.topology.link(cables.front()));
    const auto [it, is_new] = config_of_hca_.try_emplace({device.type, there.preset, there.peer_response.value},
                                                         static_cast<std::uint32_t>(configs.size()));
    if (is_new) configs.push_back(hca_config(device.type, there));
    // Every cabled port of an HCA is an end point of its own.
    int port = 0;
    for (const auto up : cables) {
      const auto name = port == 0 ? device.name : fmt::format("{} port {}", device.name, port);
      host_of_cable_[up.value / 2] = out_.network.add_host(name, it->second);
      ++port;
    }
  }

  /// `there`: settings of the switch it is cabled to.
  [[nodiscard]] packet::HcaConfig hca_config(const std::string& type, const LosslessSettings& there) const {
    const auto& topology = input_.topology;
    packet::HcaConfig config;
    config.name = type;
    auto& transport = config.transport;
    transport = *packet::transport_preset(topology.is_infiniband() ? "infiniband" : "rocev2");
    if (is_simulator(there.preset)) {
      transport = *packet::transport_preset(there.preset);
    } else {
      const double payload = packet_payload(topology.spec().fabric, input_.parameters, type);
      if (payload > 0) transport.mtu = {std::llround(payload)};
      // The catalogue counts all bytes around the payload, gaps included.
      const auto around = std::llround(input_.parameters.value_or(
          type, "packet_header", static_cast<double>(transport.header.value + transport.wire_gap.value)));
      transport.wire_gap = {std::min<std::int64_t>(around, transport.wire_gap.value)};
      transport.header = {around - transport.wire_gap.value};
    }
    transport.cnp_class = settings_.cnp_priority;
    transport.window = input_.transport.window.value_or(Bytes{0});
    transport.out_of_order = packet_routing(topology.spec().fabric, input_.transport.routing) != "ecmp";
    transport.congestion_control = uses_dcqcn(settings_, input_.transport) ? "dcqcn" : "none";
    transport.dcqcn = dcqcn_config(type);
    config.pause_response = transfer_time(there.peer_response, Bandwidth{fastest_});
    if (there.flow_control != FlowControl::pfc || is_simulator(there.preset)) config.pause_response = {};
    return config;
  }

  [[nodiscard]] packet::DcqcnConfig dcqcn_config(const std::string& type) const {
    packet::DcqcnConfig out;
    const auto made = dcqcn_settings(input_.topology, input_.parameters, type);
    out.cnp_interval = made.cnp_interval;
    out.alpha_interval = made.alpha_interval;
    out.decrease_interval = made.decrease_interval;
    out.increase_timer = made.increase_interval;
    out.byte_counter = made.byte_counter.value >= 1'000'000'000'000 ? Bytes{0} : made.byte_counter;
    out.g = made.g;
    out.initial_alpha = made.initial_alpha;
    out.fast_recovery = made.fast_recovery;
    out.clamp_target = made.clamp_target;
    out.additive = made.additive_increase;
    out.hyper = made.hyper_increase;
    out.minimum = made.minimum_rate;
    return out;
  }

  void connect_all() {
    const auto& topology = input_.topology;
    out_.first_link = topology.first_network_link();
    out_.port_of_link.resize(static_cast<std::size_t>(topology.num_links() - out_.first_link));
    for (int l = out_.first_link; l < topology.num_links(); l += 2) {
      const auto link = topology.link(LinkId{l});
      const auto from = node_at(link.from, link.id);
      const auto to = node_at(link.to, link.id);
      if (!from || !to) continue;
      const auto [there, back] = out_.network.connect(*from, *to, link.bandwidth, link.latency);
      const auto index = static_cast<std::size_t>(l - out_.first_link);
      out_.port_of_link[index] = there;
      out_.port_of_link[index + 1] = back;
      set_end(there, link, topology.reverse(link.id));
      set_end(back, link, link.id);
    }
  }

  /// `incoming`: what the port receives over.
  void set_end(packet::PortId port, const Link& cable, LinkId incoming) {
    auto& end = out_.network.ports[packet::index(port)];
    end.unprotected = unprotected(cable);
    const auto link = input_.topology.link(incoming);
    const auto& own = switches_.of(link);
    const bool is_derived = own.flow_control == FlowControl::pfc && own.is_headroom_auto && own.headroom_delays == 0;
    if (is_derived) end.headroom = headroom_of(own, link);
  }

  /// The node a cable ends at; nothing for HCAs that take no part and for cables from HCA to HCA.
  [[nodiscard]] std::optional<packet::NodeId> node_at(DeviceId device, LinkId link) const {
    const bool is_switch = input_.topology.kind(device) == DeviceKind::network_switch;
    const auto& nodes = is_switch ? node_of_ : host_of_cable_;
    const auto it = nodes.find(is_switch ? device.value : link.value / 2);
    return it == nodes.end() ? std::nullopt : std::optional(it->second);
  }

  /// Ports every switch may use towards every switch with HCAs. Queue pairs with a route of their own do not look here.
  void set_routes() {
    const auto& topology = input_.topology;
    if (packet_routing(topology.spec().fabric, input_.transport.routing) == "ecmp") {
      // Only acknowledgements without a reverse route would ask; shortest paths serve.
      out_.network.routing = packet::route_by_shortest_paths(out_.network);
      return;
    }
    std::set<std::int32_t> leaves;
    for (const auto hca : input_.hcas) {
      for (const auto up : topology.uplinks(hca)) leaves.insert(topology.link(up).to.value);
    }
    // Hosts' cables first: their packets have not gone down yet, where that matters.
    for (const bool is_first_hop : {true, false}) {
      for (int l = out_.first_link; l < topology.num_links(); ++l) {
        const auto link = topology.link(LinkId{l});
        const bool is_from_host = topology.kind(link.from) != DeviceKind::network_switch;
        if (is_from_host != is_first_hop || !node_at(link.from, link.id)) continue;
        if (topology.kind(link.to) != DeviceKind::network_switch) continue;
        for (const auto leaf : leaves) set_route(link, DeviceId{leaf});
      }
    }
  }

  /// Egress ports behind `arrived` towards `leaf`; kept for that link alone where they differ from those of others.
  void set_route(const Link& arrived, DeviceId leaf) {
    std::vector<packet::PortId> egress;
    for (const auto next : input_.topology.next_network_links(arrived.id, leaf)) egress.push_back(out_.sender(next));
    if (egress.empty()) return;
    const auto here = node_of_.at(arrived.to.value);
    const auto goal = node_of_.at(leaf.value);
    auto& routing = out_.network.routing;
    const auto& known = routing.candidates(here, goal);
    if (known.empty()) {
      routing.set(here, goal, std::move(egress));
    } else if (known != egress) {
      routing.set_behind(out_.sender(input_.topology.reverse(arrived.id)), goal, std::move(egress));
    }
  }

  const PacketFabricInput& input_;
  LosslessSettings settings_;  ///< for what holds for all switches
  SwitchSettings switches_;
  double fastest_ = 0;                    ///< bytes/s of the fastest network link
  std::vector<int> protected_somewhere_;  ///< priorities, where ports differ
  PacketFabric out_;
  std::map<std::int32_t, packet::NodeId> node_of_;                                  ///< switches
  std::map<std::int32_t, packet::NodeId> host_of_cable_;                            ///< [link / 2] of an HCA's cable
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> config_of_switch_;  ///< [type, latency]
  /// [type, and of the switch it is cabled to: preset, what it sends until it obeys a pause]
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::uint32_t> config_of_hca_;
};

}  // namespace

bool uses_dcqcn(const LosslessSettings& settings, const TransportSpec& transport) {
  if (transport.congestion_control == "auto")
    return settings.flow_control != FlowControl::credits && settings.is_ecn_on;
  return transport.congestion_control == "dcqcn";
}

PacketFabric make_packet_fabric(const PacketFabricInput& input) { return FabricMaker(input).make(); }

}  // namespace fabricast::engine
