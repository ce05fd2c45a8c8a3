// SPDX-License-Identifier: Apache-2.0
// Rules of lossless fabrics: headroom, memory, packet sizes, classes, credits, deadlock.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "check/lossless_traffic.hpp"
#include "fabricast/check.hpp"
#include "fabricast/lossless.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast {

namespace {

/// What counts against a port's MTU beside the payload (IP packet): IPv4 20, UDP 8, BTH 12, ICRC 4.
constexpr std::int64_t k_roce_ip_header = 44;
/// A port can advertise 2048 credits of 64 B per lane [InfiniBand architecture, 7.9].
constexpr std::int64_t k_largest_vl_buffer = 128 * 1024;

class LosslessRules {
 public:
  LosslessRules(const Topology& topology, const ParameterSet& parameters, const Scenario* scenario)
      : topology_(topology),
        parameters_(parameters),
        scenario_(scenario),
        fabric_(topology.spec().fabric),
        settings_(lossless_settings(topology, parameters)),
        switches_(topology, parameters),
        ports_(port_headrooms(topology, parameters)) {}

  Diagnostics run() {
    if (settings_.flow_control == FlowControl::drop) return {};
    // Ethernet without a word runs with PFC in the packet engine: a scenario can deadlock there too.
    if (is_lossless(topology_) || scenario_ != nullptr) check_deadlock();
    if (!is_lossless(topology_)) return std::move(found_);
    if (settings_.flow_control == FlowControl::credits) check_credits();
    if (!fabric_.lossless) return std::move(found_);
    check_mtu();
    if (settings_.flow_control == FlowControl::pfc) check_port_settings();
    if (settings_.flow_control == FlowControl::pfc) check_vm_priorities();
    if (scenario_ != nullptr && settings_.flow_control == FlowControl::pfc) check_priorities();
    if (settings_.flow_control == FlowControl::pfc) {
      check_headroom();
      check_classes();
      for (const auto& type : switch_types(fabric_)) {
        check_memory(type);
        check_threshold(switches_.of(type));
      }
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] SourceLocation place(const char* key) const {
    if (!fabric_.lossless) return fabric_.location;
    const auto it = fabric_.lossless->locations.find(key);
    return it == fabric_.lossless->locations.end() ? fabric_.lossless->location : it->second;
  }

  void warn(const SourceLocation& where, std::string message, std::string fix) {
    found_.push_back(make_warning_at(where, std::move(message), std::move(fix)));
  }

  void check_headroom() {
    for (const auto& port : ports_) {
      if (port.configured >= port.needed) continue;
      warn(
          place("headroom"),
          fmt::format("headroom of {} B is less than the {} B that {} over {:g} m needs ({} such port{}): packets of a "
                      "lossless class will be dropped",
                      port.configured.value, port.needed.value, check::gigabits(port.rate), port.cable_m,
                      port.num_ports, port.num_ports == 1 ? "" : "s"),
          fmt::format("use `headroom: auto` ({} B), shorter cables or a smaller MTU", port.vendor.xoff.value));
    }
  }

  void check_memory(const std::string& type) {
    const auto& own = switches_.of(type);
    std::int64_t taken = 0;
    int num_ports = 0;
    for (const auto& port : ports_) {
      if (port.switch_type != type) continue;
      const auto each = port.configured.value + own.reserved.value;
      taken += each * port.most_on_one_switch * static_cast<std::int64_t>(own.pfc.size());
      num_ports += port.most_on_one_switch;
    }
    if (num_ports == 0) return;
    const auto left = own.buffer.value - taken;
    if (left < 0) {
      warn(place("pfc"),
           fmt::format("headroom and reserved buffers of {} ports and {} lossless priorit{} take {}, the switch has {}",
                       num_ports, own.pfc.size(), own.pfc.size() == 1 ? "y" : "ies", to_string(Bytes{taken}),
                       to_string(own.buffer)),
           "use fewer lossless priorities, shorter cables or less headroom");
    } else if (own.shared_buffer.value > left) {
      warn(
          place("shared_buffer"),
          fmt::format("a lossless pool of {} does not fit beside {} of headroom and reserved buffers of {} ports in {}",
                      to_string(own.shared_buffer), to_string(Bytes{taken}), num_ports, to_string(own.buffer)),
          fmt::format("a pool of {} fits", to_string(Bytes{left})));
    }
  }

  void check_mtu() {
    constexpr std::array k_mtus{256, 512, 1024, 2048, 4096};
    if (fabric_.mtu && std::find(k_mtus.begin(), k_mtus.end(), *fabric_.mtu) == k_mtus.end())
      warn(fabric_.location, fmt::format("RDMA packets cannot carry {} B", *fabric_.mtu),
           "the path MTU is 256, 512, 1024, 2048 or 4096 B; the next smaller one is used");
    if (settings_.flow_control != FlowControl::pfc) return;
    const auto frame = largest_payload(topology_, parameters_).value + k_roce_ip_header;
    if (frame > settings_.port_mtu.value)
      warn(place("port_mtu"),
           fmt::format("RoCE packets of {} B do not pass ports with an MTU of {} B", frame, settings_.port_mtu.value),
           fmt::format("raise the port MTU to {} B or lower `mtu`", frame));
  }

  void check_classes() {
    const auto& pfc = settings_.pfc;
    if (std::find(pfc.begin(), pfc.end(), settings_.cnp_priority) != pfc.end())
      warn(place("cnp_priority"),
           fmt::format("congestion notifications use priority {}, which PFC pauses", settings_.cnp_priority),
           "senders would hear of congestion late: give CNPs a priority of their own (6)");
    const auto weight = settings_.weights.find(settings_.cnp_priority);
    if (weight != settings_.weights.end() && weight->second > 0)
      warn(place("weights"),
           fmt::format("congestion notifications (priority {}) are not scheduled first", settings_.cnp_priority),
           fmt::format("write `weights: {{{}: strict}}`", settings_.cnp_priority));
    if (pfc.size() > 2)
      warn(place("pfc"), fmt::format("{} priorities are lossless", pfc.size()),
           "every one takes headroom on every port; two are usual");
    if (fabric_.lossless->trust == "pcp" && topology_.devices(DeviceKind::network_switch).size() > 1)
      warn(place("trust"), "priorities come from the VLAN tag (pcp) in a fabric of several switches",
           "routed packets lose their tag: use `trust: dscp`");
  }

  /// One congested port may hold so much before it is paused.
  void check_threshold(const LosslessSettings& own) {
    if (!own.is_ecn_on) return;
    const double most = own.is_static ? static_cast<double>(own.xoff.value)
                                      : static_cast<double>(own.shared_buffer.value) * own.alpha / (1 + own.alpha);
    if (static_cast<double>(own.ecn_min.value) > most)
      warn(place("ecn"),
           fmt::format("PFC pauses a lone port at {}, before ECN marks anything at {}",
                       to_string(Bytes{static_cast<std::int64_t>(most)}), to_string(own.ecn_min)),
           "raise alpha, XOFF or the pool, or lower the ECN threshold");
  }

  /// Full rate needs credits for a round trip, the update interval, and a packet.
  void check_credits() {
    const auto most = Bytes{std::max(k_largest_vl_buffer, settings_.generation_vl_buffer.value)};
    if (fabric_.lossless && settings_.vl_buffer > most)
      warn(place("vl_buffer"),
           fmt::format("a lane's buffer of {} is more than the {} a port can advertise", to_string(settings_.vl_buffer),
                       to_string(most)),
           settings_.generation_vl_buffer.value > k_largest_vl_buffer
               ? "so much gives full rate over the longest cable made for these switches"
               : "credits are counted up to 2048 blocks of 64 B");
    const auto worst = slowest_credits(topology_, parameters_, switches_);
    if (!worst) return;
    warn(place("vl_buffer"),
         fmt::format("{} of buffer per lane keep {} at {:.0f} % of its rate", to_string(worst->buffer),
                     topology_.link_name(worst->link), 100 * worst->share),
         fmt::format("{} B cover the round trip, the credit update and a packet; a shorter cable needs less",
                     worst->needed.value));
  }

  /// PFC acts on a cable when both of its ends are set to it.
  void check_port_settings() {
    if (settings_.port_pfc.empty()) return;
    std::set<std::string> named;
    for (int l = topology_.first_network_link(); l < topology_.num_links(); l += 2) {
      const auto link = topology_.link(LinkId{l});
      for (const auto& [here, there] : {std::pair{link.from, link.to}, std::pair{link.to, link.from}}) {
        const auto name = topology_.device(here).name;
        named.insert({name, name + "/" + topology_.device(there).name});
      }
      check_cable(link);
    }
    for (const auto& [settings, neighbours] : disagreements_)
      warn(place("ports"),
           fmt::format("flow control disagrees: {}, {}{}: priorities of one end alone are lossy there", settings,
                       neighbours.front(),
                       neighbours.size() == 1 ? "" : fmt::format(" (and {} others)", neighbours.size() - 1)),
           "set the same priorities at both ends (mlnx_qos --pfc; dcb priority-flow-control priority N enable)");
    for (const auto& entry : fabric_.lossless->port_pfc) {
      if (!named.contains(entry.first))
        warn(place("ports"), fmt::format("'{}' is no switch and no adapter of the topology", entry.first),
             "ports are named by their switch, leaf0, or adapter, host.hca0; one port by both ends, leaf0/host.hca0");
    }
  }

  void check_cable(const Link& link) {
    const auto sets = [&](DeviceId here, DeviceId there) {
      const auto own = port_priorities(topology_, settings_, here, there);
      return own.empty() ? std::string("nothing") : fmt::format("{}", fmt::join(own, ", "));
    };
    auto [one, other] = std::pair{link.from, link.to};
    if (sets(one, other) == sets(other, one)) return;
    // The end that the topology names, the adapter first.
    const auto is_named = [&](DeviceId here, DeviceId there) {
      const auto name = topology_.device(here).name;
      return settings_.port_pfc.contains(name) ||
             settings_.port_pfc.contains(name + "/" + topology_.device(there).name);
    };
    if (!is_named(one, other)) std::swap(one, other);
    const auto port = topology_.device(one).name + "/" + topology_.device(other).name;
    const std::string name = settings_.port_pfc.contains(port) ? port : topology_.device(one).name;
    disagreements_[fmt::format("{} pauses {}", name, sets(one, other))].push_back(
        fmt::format("its neighbour {} {}", topology_.device(other).name, sets(other, one)));
  }

  /// Frames of a VM carry the priority of its port group, and switches that trust PCP act on it.
  void check_vm_priorities() {
    std::set<std::pair<int, int>> said;
    for (int host = 0; host < topology_.num_hosts(); ++host) {
      const auto& vm = topology_.virtualization(host);
      const auto where = vm.locations.find("port_group.priority");
      const bool is_rdma = vm.is_virtual() && !is_tcp_only(vm.nic) && topology_.count(DeviceKind::hca, host) > 0;
      if (!is_rdma || vm.vlan == 0 || (fabric_.lossless->trust == "dscp" && where == vm.locations.end())) continue;
      const int priority = vm.priority.value_or(0);
      if (!said.insert({vm.location.line, priority}).second) continue;
      const auto& place = where == vm.locations.end() ? vm.location : where->second;
      if (fabric_.lossless->trust == "dscp")
        warn(place, fmt::format("switches trust the DSCP: nobody reads priority {} of the VLAN tag", priority),
             "write `lossless: {trust: pcp}`, or mark the packets (marks: {dscp: 26}) and remove `priority`");
      else if (check::is_lossy_everywhere(topology_, settings_, priority))
        warn(place,
             fmt::format("RDMA packets of VM '{}' carry priority {}, and PFC acts on {}: full buffers will drop them",
                         topology_.host_name(host), priority, pfc_words()),
             fmt::format("write `priority: {}` in its port group, or list {} under `pfc`", usual_priority(priority),
                         priority));
    }
  }

  /// Traffic in a priority that PFC does not pause is dropped by a full buffer.
  void check_priorities() {
    for (const auto& workload : scenario_->workloads) {
      check_priority(workload.transport.priority, std::nullopt, workload.location);
      for (const auto& flow : workload.traffic.flows) {
        if (flow.priority) check_priority(workload.transport.priority, flow.priority, flow.location);
      }
    }
  }

  void check_priority(std::optional<int> workload, std::optional<int> flow, const SourceLocation& where) {
    const int used = priority_in_use(settings_, workload, flow);
    if (!check::is_lossy_everywhere(topology_, settings_, used)) return check_lossy_cables(used);
    warn(where,
         fmt::format("traffic travels in priority {}, and PFC acts on {}: full buffers will drop its packets", used,
                     pfc_words()),
         settings_.marked && !workload && !flow
             ? fmt::format("mark the packets so that `trust: {}` gives a lossless priority, or list {} under `pfc`",
                           fabric_.lossless->trust, used)
             : fmt::format("use `priority: {}`, or list {} under `pfc`", usual_priority(used), used));
  }

  [[nodiscard]] std::string pfc_words() const {
    return settings_.pfc.empty() ? std::string("none") : fmt::format("{}", fmt::join(settings_.pfc, ", "));
  }
  [[nodiscard]] int usual_priority(int fallback) const {
    return settings_.pfc.empty() ? fallback : settings_.pfc.front();
  }

  /// Both ends of a cable may agree that what travels is lossy there.
  void check_lossy_cables(int used) {
    if (settings_.port_pfc.empty() || !said_lossy_.insert(used).second) return;
    const auto cables = check::agreed_lossy_cables(topology_, settings_, used);
    if (cables.empty()) return;
    warn(
        place("ports"),
        fmt::format("traffic travels in priority {}, which neither end of {} pauses: full buffers drop it there", used,
                    cables),
        fmt::format("list {} at both ends (mlnx_qos --pfc; dcb priority-flow-control priority {} enable)", used, used));
  }

  void check_deadlock() {
    const bool is_per_packet = scenario_ != nullptr && check::chooses_per_packet(fabric_, *scenario_);
    const int lanes = lanes_on_routes(topology_, settings_, is_per_packet);
    const auto report = find_deadlock(topology_, settings_, priorities(), lanes);
    if (!report.is_analysed) {
      warn(fabric_.location, fmt::format("not searched for deadlock: {}", report.reason), "search a smaller one alike");
      return;
    }
    if (report.cycle.empty()) return;
    warn(
        fabric_.location,
        fmt::format("the routes can deadlock{}{}: {} buffers wait for each other in a circle: {}",
                    is_per_packet ? fmt::format(" with {} routing",
                                                packet_routing(fabric_, scenario_->workloads.front().transport.routing))
                                  : "",
                    report.priority < 0 ? "" : fmt::format(" in priority {}", report.priority), report.cycle.size(),
                    describe_cycle(topology_, report)),
        way_out(is_per_packet, lanes));
  }
  [[nodiscard]] std::set<int> priorities() const {
    return check::priorities_that_travel(topology_, settings_, scenario_);
  }

  [[nodiscard]] std::string way_out(bool is_per_packet, int lanes) const {
    const bool has_rings = fabric_.kind == FabricKind::torus || fabric_.kind == FabricKind::dragonfly;
    if (!has_rings || settings_.flow_control != FlowControl::credits) return "use `routing: up_down`";
    if (!is_per_packet) return fmt::format("use `routing: up_down`, or `lossless: {{virtual_lanes: {}}}`", lanes + 1);
    // Packets that choose ports one by one keep to one lane.
    return settings_.virtual_lanes > 1 && find_buffer_cycle(topology_, settings_.virtual_lanes).cycle.empty()
               ? "packets that choose ports one by one keep to one lane: use `routing: up_down`, or `transport: "
                 "{routing: ecmp}`, whose routes change lanes"
               : "packets that choose ports one by one keep to one lane: use `routing: up_down`";
  }

  const Topology& topology_;
  const ParameterSet& parameters_;
  const Scenario* scenario_;  ///< or none
  const FabricSpec& fabric_;
  LosslessSettings settings_;  ///< for what holds for all switches
  SwitchSettings switches_;
  std::vector<PortHeadroom> ports_;
  std::map<std::string, std::vector<std::string>> disagreements_;  ///< what one end does -> what its neighbours do
  std::set<int> said_lossy_;                                       ///< priorities whose lossy cables are named
  Diagnostics found_;
};

}  // namespace

Diagnostics check_lossless(const Topology& topology, const ParameterSet& parameters, const Scenario* scenario) {
  return LosslessRules(topology, parameters, scenario).run();
}

}  // namespace fabricast
