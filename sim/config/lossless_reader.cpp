// SPDX-License-Identifier: Apache-2.0
#include "config/lossless_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/optional_keys.hpp"
#include "config/schema.hpp"

namespace fabricast::config {

namespace {

DcqcnSpec read_dcqcn(const Node& node) {
  DcqcnSpec dcqcn;
  read_number(node, "g", dcqcn.g);
  read_number(node, "initial_alpha", dcqcn.initial_alpha);
  read_time(node, "alpha_interval", dcqcn.alpha_interval);
  read_time(node, "decrease_interval", dcqcn.decrease_interval);
  read_time(node, "increase_interval", dcqcn.increase_interval);
  read_time(node, "cnp_interval", dcqcn.cnp_interval);
  read_size(node, "byte_counter", dcqcn.byte_counter);
  if (const auto* found = node.find("fast_recovery")) dcqcn.fast_recovery = static_cast<int>(as_integer(*found));
  if (const auto* clamp = node.find("clamp_target")) dcqcn.clamp_target = as_flag(*clamp);
  read_rate(node, "additive_increase", dcqcn.additive_increase);
  read_rate(node, "hyper_increase", dcqcn.hyper_increase);
  read_rate(node, "minimum_rate", dcqcn.minimum_rate);
  return dcqcn;
}

void read_classes(const Node& node, LosslessSpec& spec, Diagnostics& faults) {
  if (const auto* pfc = node.find("pfc")) {
    for (const auto& one : pfc->items) {
      const int priority = static_cast<int>(as_integer(one));
      if (std::find(spec.pfc.begin(), spec.pfc.end(), priority) != spec.pfc.end())
        faults.push_back(one.error(fmt::format("priority {} is listed twice", priority)));
      spec.pfc.push_back(priority);
    }
    if (pfc->items.empty())
      faults.push_back(pfc->error("'pfc' lists no priority", "write `flow_control: drop` for a fabric without PFC"));
  }
  if (const auto* weights = node.find("weights")) {
    for (const auto& entry : weights->entries) {
      const auto& key = entry.key.scalar;
      if (key.size() != 1 || key[0] < '0' || key[0] > '7') {
        faults.push_back(entry.key.error(fmt::format("'{}' is no priority", key), "priorities are 0 to 7"));
        continue;
      }
      spec.weights[key[0] - '0'] = as_weight(entry.value);
    }
  }
  if (const auto* cnp = node.find("cnp_priority")) spec.cnp_priority = static_cast<int>(as_integer(*cnp));
}

void read_ecn(const Node& node, LosslessSpec& spec, Diagnostics& faults) {
  const auto* ecn = node.find("ecn");
  if (ecn == nullptr) return;
  if (ecn->kind == Node::Kind::scalar) {
    spec.ecn = as_flag(*ecn);
    return;
  }
  spec.ecn = true;
  read_size(*ecn, "min", spec.ecn_min);
  read_size(*ecn, "max", spec.ecn_max);
  read_number(*ecn, "probability", spec.ecn_probability);
  if (spec.ecn_min && spec.ecn_max && *spec.ecn_min > *spec.ecn_max)
    faults.push_back(ecn->find("min")->error(fmt::format("ECN marks from {} but must mark everything at {}",
                                                         to_string(*spec.ecn_min), to_string(*spec.ecn_max)),
                                             "`min` is at most `max`"));
}

/// What packets carry and what switches make of it.
void read_marks(const Node& node, LosslessSpec& spec, Diagnostics& faults) {
  if (const auto* marks = node.find("marks")) {
    const auto integer = [&](const char* key, std::optional<int>& into) {
      if (const auto* found = marks->find(key)) into = static_cast<int>(as_integer(*found));
    };
    integer("dscp", spec.dscp);
    integer("pcp", spec.pcp);
    integer("vlan", spec.vlan);
    if (spec.trust == "dscp" && spec.pcp && !spec.dscp)
      faults.push_back(marks->find("pcp")->error("switches trust the DSCP, packets are marked by PCP",
                                                 "write `trust: pcp`, or the DSCP of the packets"));
  }
  if (const auto* table = node.find("dscp_to_priority")) {
    for (const auto& entry : table->entries) {
      const auto dscp = as_whole(entry.key, 0, 63);
      if (dscp)
        spec.dscp_priorities[*dscp] = static_cast<int>(as_integer(entry.value));
      else
        faults.push_back(entry.key.error(fmt::format("'{}' is no DSCP", entry.key.scalar), "DSCPs are 0 to 63"));
    }
    const bool is_pfc = spec.flow_control.value_or(FlowControl::pfc) == FlowControl::pfc;
    if (is_pfc && (spec.trust != "dscp" || node.find("marks") == nullptr))
      faults.push_back(
          table->error("nobody reads 'dscp_to_priority'", "it belongs to `trust: dscp` and `marks: {dscp: N}`"));
  }
  if (const auto* ports = node.find("ports")) {
    for (const auto& entry : ports->entries) {
      auto& own = spec.port_pfc[entry.key.scalar];
      for (const auto& one : entry.value.items) own.push_back(static_cast<int>(as_integer(one)));
    }
  }
}

}  // namespace

LosslessSpec read_lossless(const Node& node, Diagnostics& faults) {
  LosslessSpec spec;
  spec.location = node.location();
  for (const auto& entry : node.entries) spec.locations[entry.key.scalar] = entry.key.location();
  if (const auto* preset = node.find("preset")) spec.preset = preset->scalar;
  if (const auto* control = node.find("flow_control")) {
    for (const auto known : {FlowControl::pfc, FlowControl::credits, FlowControl::drop}) {
      if (control->scalar == to_string(known)) spec.flow_control = known;
    }
  }
  if (const auto* system = node.find("operating_system")) spec.operating_system = system->scalar;
  if (const auto* trust = node.find("trust")) spec.trust = trust->scalar;
  read_marks(node, spec, faults);
  read_classes(node, spec, faults);
  read_ecn(node, spec, faults);
  if (const auto* headroom = node.find("headroom")) spec.headroom = to_bytes(as_size_or_auto(*headroom));
  read_size(node, "xoff", spec.xoff);
  read_size(node, "xon", spec.xon);
  read_size(node, "resume_offset", spec.resume_offset);
  read_size(node, "reserved", spec.reserved);
  read_size(node, "shared_buffer", spec.shared_buffer);
  read_size(node, "cell", spec.cell);
  read_size(node, "port_mtu", spec.port_mtu);
  read_size(node, "lossless_mtu", spec.lossless_mtu);
  read_size(node, "vl_buffer", spec.vl_buffer);
  read_number(node, "alpha", spec.alpha);
  read_number(node, "pool_share", spec.pool_share);
  read_time(node, "pause_time", spec.pause_time);
  read_time(node, "credit_update", spec.credit_update);
  if (const auto* lanes = node.find("virtual_lanes")) spec.virtual_lanes = static_cast<int>(as_integer(*lanes));
  if (spec.xon && !spec.xoff)
    faults.push_back(node.find("xon")->error("'xon' without 'xoff'", "dynamic thresholds take `resume_offset`"));
  if (spec.xon && spec.xoff && *spec.xon > *spec.xoff)
    faults.push_back(node.find("xon")->error(
        fmt::format("XON at {} is above XOFF at {}", to_string(*spec.xon), to_string(*spec.xoff)),
        "a port resumes below the threshold that stopped it"));
  if (spec.xoff && spec.alpha)
    faults.push_back(node.find("alpha")->error("'alpha' and 'xoff' are both given",
                                               "a threshold is dynamic (alpha) or static (xoff, xon)"));
  if (const auto* dcqcn = node.find("dcqcn")) spec.dcqcn = read_dcqcn(*dcqcn);
  return spec;
}

}  // namespace fabricast::config
