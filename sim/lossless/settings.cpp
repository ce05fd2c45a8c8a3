// SPDX-License-Identifier: Apache-2.0
// Which value counts: what the topology gives, then the preset it names, then the switch (or HCA) type, then the
// switch's ASIC, then the shipped default `lossless.<field>` or `dcqcn.<field>`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "fabricast/lossless.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast {

namespace {

constexpr double k_seconds_per_metre = 5.05e-9;  ///< of cable, as links are built (sim/topology/build_topology.cpp)
constexpr double k_largest_packet = 4096;        ///< bytes, largest MTU of InfiniBand
constexpr double k_credit_block = 64;            ///< bytes

class Resolver {
 public:
  Resolver(const Topology& topology, const ParameterSet& parameters, const std::string& switch_type)
      : parameters_(parameters), asic_(asic_of(topology.spec().fabric, switch_type)) {
    const auto& spec = topology.spec().fabric;
    if (spec.lossless) given_ = *spec.lossless;
    for (const auto& owner : {given_.preset, switch_type, asic_})
      if (!owner.empty()) owners_.push_back(owner);
  }

  [[nodiscard]] const LosslessSpec& given() const { return given_; }
  [[nodiscard]] std::string preset() const { return given_.preset.empty() ? asic_ : given_.preset; }

  /// The value of `field` that counts when the topology gives none.
  [[nodiscard]] double value(const char* field) const {
    for (const auto& owner : owners_) {
      if (const auto* found = parameters_.find(owner, field)) return found->value;
    }
    return parameters_.number(fmt::format("lossless.{}", field));
  }
  [[nodiscard]] double number(const std::optional<double>& given, const char* field) const {
    return given ? *given : value(field);
  }
  [[nodiscard]] Bytes bytes(const std::optional<Bytes>& given, const char* field) const {
    return given ? *given : Bytes{std::llround(value(field))};
  }
  [[nodiscard]] Duration time(const std::optional<Duration>& given, const char* field) const {
    return given ? *given : from_seconds(value(field));
  }

  /// Buffer of a lane that gives full rate over the longest cable made for the switch's generation: rate x (round trip
  /// + forwarding + time `update` between credit updates) + 2 packets. 0 when its page names none.
  [[nodiscard]] Bytes generation_lane_buffer(Duration update) const {
    for (const auto& owner : owners_) {
      const auto* cable = parameters_.find(owner + ".longest_cable");
      const auto* rate = parameters_.find(owner + ".rate");
      const auto* latency = parameters_.find(owner + ".latency");
      if (cable == nullptr || rate == nullptr || latency == nullptr) continue;
      const auto round_trip = 2 * cable->value * k_seconds_per_metre + latency->value + update.seconds();
      const auto blocks = std::ceil((rate->value * round_trip + 2 * k_largest_packet) / k_credit_block);
      return Bytes{range::whole(blocks * k_credit_block)};
    }
    return {};
  }
  [[nodiscard]] bool has_own(const char* field) const {
    return std::ranges::any_of(owners_, [&](const auto& owner) { return parameters_.find(owner, field) != nullptr; });
  }

  /// The switch's operating system where alpha depends on it: the one given, else the first the ASIC has a value for.
  [[nodiscard]] std::string operating_system() const {
    for (const auto& owner : owners_) {
      for (const char* system : {"onyx", "sonic"}) {
        if (!given_.operating_system.empty() && given_.operating_system != system) continue;
        if (parameters_.find(fmt::format("{}.alpha_{}", owner, system)) != nullptr) return system;
      }
      if (parameters_.find(owner + ".alpha") != nullptr) return "";
    }
    return "";
  }

  /// A DCQCN field: preset, HCA type, shipped default.
  [[nodiscard]] double dcqcn(const std::string& hca_type, const std::string& field) const {
    for (const auto& owner : {given_.preset, hca_type}) {
      if (const auto* found = parameters_.find(fmt::format("{}.dcqcn_{}", owner, field))) return found->value;
    }
    return parameters_.number("dcqcn." + field);
  }

 private:
  const ParameterSet& parameters_;
  std::string asic_;
  LosslessSpec given_;
  std::vector<std::string> owners_;
};

void set_memory(const Resolver& resolver, LosslessSettings& out) {
  const auto& given = resolver.given();
  out.buffer = resolver.bytes(std::nullopt, "buffer");
  out.cell = resolver.bytes(given.cell, "cell");
  out.reserved = resolver.bytes(given.reserved, "reserved");
  const double share = resolver.number(given.pool_share, "pool_share");
  out.shared_buffer =
      given.shared_buffer.value_or(Bytes{static_cast<std::int64_t>(static_cast<double>(out.buffer.value) * share)});
  if (!given.alpha) out.operating_system = resolver.operating_system();
  out.alpha =
      resolver.number(given.alpha, out.operating_system.empty() ? "alpha" : ("alpha_" + out.operating_system).c_str());
  out.resume_offset = resolver.bytes(given.resume_offset, "resume_offset");
  out.xoff = resolver.bytes(given.xoff, "xoff");
  out.xon = given.xoff && !given.xon ? out.xoff : resolver.bytes(given.xon, "xon");
  // A preset with a static threshold gives way to an alpha of the topology's own.
  out.is_static = given.xoff || (out.xoff.value > 0 && !given.alpha);
  out.headroom = resolver.bytes(given.headroom, "headroom");
  out.is_headroom_auto = out.headroom.value == 0;
  out.headroom_delays = given.headroom ? 0 : resolver.value("headroom_delays");
}

/// What trust makes of the marks: the DSCP by the table (else its upper three bits), or the PCP of tagged packets;
/// packets without the mark have the port's default, 0. Empty when nothing is said of marks.
std::optional<int> marked_priority(const LosslessSpec& given) {
  if (!given.dscp && !given.pcp && !given.vlan) return std::nullopt;
  if (given.trust == "pcp") return given.vlan.value_or(1) > 0 ? given.pcp.value_or(0) : 0;
  const int dscp = given.dscp.value_or(0);
  const auto mapped = given.dscp_priorities.find(dscp);
  return mapped == given.dscp_priorities.end() ? dscp / 8 : mapped->second;
}

}  // namespace

LosslessSettings lossless_settings(const Topology& topology, const ParameterSet& parameters) {
  const auto types = switch_types(topology.spec().fabric);
  return lossless_settings(topology, parameters, types.empty() ? std::string() : types.front());
}

const LosslessSettings& SwitchSettings::of(const std::string& switch_type) {
  const auto known = of_type_.find(switch_type);
  if (known != of_type_.end()) return known->second;
  return of_type_.emplace(switch_type, lossless_settings(topology_, parameters_, switch_type)).first->second;
}

const LosslessSettings& SwitchSettings::of(const Link& link) {
  const bool is_received = topology_.kind(link.to) == DeviceKind::network_switch;
  const auto there = topology_.device(is_received ? link.to : link.from);
  return of(there.type);
}

LosslessSettings lossless_settings(const Topology& topology, const ParameterSet& parameters,
                                   const std::string& switch_type) {
  const Resolver resolver(topology, parameters, switch_type);
  const auto& given = resolver.given();
  LosslessSettings out;
  out.is_asked_for = topology.spec().fabric.lossless.has_value();
  out.preset = resolver.preset();
  out.flow_control = given.flow_control.value_or(topology.is_infiniband() ? FlowControl::credits : FlowControl::pfc);
  out.pfc = given.pfc.empty() ? std::vector<int>{3} : given.pfc;
  std::sort(out.pfc.begin(), out.pfc.end());
  out.port_pfc = given.port_pfc;
  for (auto& entry : out.port_pfc) std::ranges::sort(entry.second);
  out.marked = marked_priority(given);
  set_memory(resolver, out);
  out.port_mtu = resolver.bytes(given.port_mtu, "port_mtu");
  out.lossless_mtu = resolver.bytes(given.lossless_mtu, "lossless_mtu");
  out.mac_phy = resolver.bytes(std::nullopt, "mac_phy");
  out.peer_response = resolver.bytes(std::nullopt, "peer_response");
  out.pipeline = resolver.bytes(std::nullopt, "pipeline");
  out.pause_time = resolver.time(given.pause_time, "pause_time");
  out.weights = given.weights;
  out.cnp_priority = given.cnp_priority;
  out.weights.try_emplace(out.cnp_priority, 0);  // CNPs go first unless told otherwise
  // Who writes down how senders react wants marks, with PFC or without.
  const bool reacts = out.flow_control == FlowControl::drop && given.gives("dcqcn");
  out.is_ecn_on = given.ecn.value_or(out.flow_control == FlowControl::pfc || reacts);
  out.ecn_min = resolver.bytes(given.ecn_min, "ecn_min");
  out.ecn_max = resolver.bytes(given.ecn_max, "ecn_max");
  out.ecn_probability = resolver.number(given.ecn_probability, "ecn_probability");
  out.ecn_reference_rate = {given.ecn_min || given.ecn_max ? 0 : resolver.value("ecn_reference_rate")};
  out.virtual_lanes = given.virtual_lanes.value_or(1);
  out.credit_update = resolver.time(given.credit_update, "credit_update");
  out.generation_vl_buffer = resolver.generation_lane_buffer(out.credit_update);
  out.vl_buffer = resolver.bytes(given.vl_buffer, "vl_buffer");
  if (!given.vl_buffer && !resolver.has_own("vl_buffer"))
    out.vl_buffer = std::max(out.vl_buffer, out.generation_vl_buffer);
  return out;
}

std::vector<int> port_priorities(const Topology& topology, const LosslessSettings& settings, DeviceId device,
                                 DeviceId neighbour) {
  if (settings.port_pfc.empty()) return settings.pfc;
  const auto name = topology.device(device).name;
  for (const auto& key : {name + "/" + topology.device(neighbour).name, name}) {
    if (const auto it = settings.port_pfc.find(key); it != settings.port_pfc.end()) return it->second;
  }
  return settings.pfc;
}

std::vector<int> cable_priorities(const Topology& topology, const LosslessSettings& settings, const Link& link) {
  if (settings.port_pfc.empty()) return settings.pfc;
  const auto one = port_priorities(topology, settings, link.from, link.to);
  const auto other = port_priorities(topology, settings, link.to, link.from);
  std::vector<int> both;
  std::ranges::set_intersection(one, other, std::back_inserter(both));
  return both;
}

int priority_in_use(const LosslessSettings& settings, std::optional<int> workload, std::optional<int> flow) {
  const bool is_credits = settings.flow_control == FlowControl::credits;
  const int usual = is_credits || settings.pfc.empty() ? 0 : settings.pfc.front();
  const int asked = flow.value_or(workload.value_or(is_credits ? usual : settings.marked.value_or(usual)));
  return is_credits ? asked % std::max(1, settings.virtual_lanes) : asked;
}

int priority_in_use(const Topology& topology, const LosslessSettings& settings, DeviceId sender,
                    std::optional<int> workload, std::optional<int> flow) {
  const auto& given = topology.spec().fabric.lossless;
  const auto& vm = topology.virtualization(topology.host_of(sender));
  if (!given || given->trust != "pcp" || vm.vlan == 0) return priority_in_use(settings, workload, flow);
  auto own = settings;
  own.marked = vm.priority.value_or(0);
  return priority_in_use(own, workload, flow);
}

bool has_lane_rule(const Topology& topology, const LosslessSettings& settings) {
  const auto& fabric = topology.spec().fabric;
  const bool has_rings = fabric.kind == FabricKind::torus || fabric.kind == FabricKind::dragonfly;
  return settings.flow_control == FlowControl::credits && settings.virtual_lanes > 1 && has_rings &&
         fabric.routing != Routing::up_down;
}

int lanes_on_routes(const Topology& topology, const LosslessSettings& settings, bool is_per_packet) {
  return !is_per_packet && has_lane_rule(topology, settings) ? settings.virtual_lanes : 1;
}

DcqcnSettings dcqcn_settings(const Topology& topology, const ParameterSet& parameters, const std::string& hca_type) {
  const Resolver resolver(topology, parameters, "");
  const auto& given = resolver.given().dcqcn;
  const auto value = [&](const char* field) { return resolver.dcqcn(hca_type, field); };
  const auto time = [&](const std::optional<Duration>& own, const char* field) {
    return own ? *own : from_seconds(value(field));
  };
  const auto rate = [&](const std::optional<Bandwidth>& own, const char* field) {
    return own ? *own : Bandwidth{value(field)};
  };
  DcqcnSettings out;
  out.g = given.g.value_or(value("g"));
  out.initial_alpha = given.initial_alpha.value_or(value("initial_alpha"));
  out.alpha_interval = time(given.alpha_interval, "alpha_interval");
  out.decrease_interval = time(given.decrease_interval, "decrease_interval");
  out.increase_interval = time(given.increase_interval, "increase_interval");
  out.cnp_interval = time(given.cnp_interval, "cnp_interval");
  out.byte_counter = given.byte_counter.value_or(Bytes{std::llround(value("byte_counter"))});
  out.fast_recovery = given.fast_recovery.value_or(static_cast<int>(std::lround(value("fast_recovery"))));
  out.clamp_target = given.clamp_target.value_or(value("clamp_target") != 0);
  out.additive_increase = rate(given.additive_increase, "additive_increase");
  out.hyper_increase = rate(given.hyper_increase, "hyper_increase");
  out.minimum_rate = rate(given.minimum_rate, "minimum_rate");
  return out;
}

bool is_lossless(const Topology& topology) {
  const auto& lossless = topology.spec().fabric.lossless;
  if (topology.is_infiniband()) return !lossless || lossless->flow_control != FlowControl::drop;
  return lossless && lossless->flow_control != FlowControl::drop;
}

}  // namespace fabricast
