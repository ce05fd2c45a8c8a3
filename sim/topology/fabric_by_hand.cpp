// SPDX-License-Identifier: Apache-2.0
// Switches and cables written one by one, and the count of ports that every fabric must pass.
#include <fmt/format.h>

#include <map>

#include "topology/fabric.hpp"

namespace fabricast::topology {

namespace {

/// Names to numbers: HCAs from 0, then switches.
using Ends = std::map<std::string, int>;

void add_switches(const FabricSpec& spec, int num_hcas, Fabric& fabric, Ends& ends, DeviceValues& values) {
  for (const auto& one : spec.switches) {
    if (one.name.empty() || one.name.find('.') != std::string::npos) {
      values.error(one.location, fmt::format("a switch is called '{}'", one.name),
                   "use a name without dots, like leaf0");
      continue;
    }
    const int node = num_hcas + static_cast<int>(fabric.switches.size());
    if (!ends.try_emplace(one.name, node).second) {
      values.error(one.location, fmt::format("two switches are called '{}'", one.name),
                   "give every switch its own name");
      continue;
    }
    fabric.switches.push_back({one.name, one.type, {}, one.location});
  }
}

int end_of(const std::string& name, const CableSpec& cable, const Ends& ends, DeviceValues& values) {
  if (const auto it = ends.find(name); it != ends.end()) return it->second;
  std::vector<std::string> known;
  for (const auto& [other, node] : ends) known.push_back(other);
  const auto hint = did_you_mean(name, known);
  values.error(cable.location, fmt::format("cable ends at '{}', which is no HCA or switch", name),
               hint.empty() ? "ends are host.hcaN or switch names" : hint);
  return -1;
}

void add_cable(const CableSpec& spec, double default_length_m, const Ends& ends, Fabric& fabric, DeviceValues& values) {
  const int a = end_of(spec.from, spec, ends, values);
  const int b = end_of(spec.to, spec, ends, values);
  if (a < 0 || b < 0) return;
  if (a == b) {
    values.error(spec.location, fmt::format("cable from '{}' to itself", spec.from), "give two ends");
    return;
  }
  if (spec.count < 1 || (spec.rate && spec.rate->bytes_per_s <= 0)) {
    values.error(spec.location, fmt::format("cable from '{}' to '{}' carries nothing", spec.from, spec.to),
                 "give 1 or more cables and a rate above 0");
    return;
  }
  if (static_cast<std::int64_t>(fabric.cables.size()) + spec.count > k_max_cables) {
    values.error(spec.location, fmt::format("more than {} cables, from this one on", k_max_cables),
                 "make the fabric smaller");
    return;
  }
  for (int k = 0; k < spec.count; ++k)
    fabric.cables.push_back(
        {a, b, spec.rate ? spec.rate->bytes_per_s : 0, spec.length_m.value_or(default_length_m), "cable.rate"});
}

}  // namespace

void add_by_hand(const FabricSpec& spec, const std::vector<HcaPort>& hcas, Fabric& fabric, DeviceValues& values) {
  if (spec.switches.empty() && spec.cables.empty()) return;
  const int num_hcas = static_cast<int>(hcas.size());
  Ends ends;
  for (int h = 0; h < num_hcas; ++h) ends[hcas[static_cast<std::size_t>(h)].name] = h;
  for (std::size_t s = 0; s < fabric.switches.size(); ++s)
    ends[fabric.switches[s].name] = num_hcas + static_cast<int>(s);
  add_switches(spec, num_hcas, fabric, ends, values);
  for (const auto& cable : spec.cables) add_cable(cable, spec.cable_length_m, ends, fabric, values);
}

void check_ports(const Fabric& fabric, int num_hcas, DeviceValues& values) {
  std::vector<int> cables(fabric.switches.size(), 0);
  for (const auto& cable : fabric.cables) {
    for (const int end : {cable.a, cable.b}) {
      if (end >= num_hcas) ++cables[static_cast<std::size_t>(end - num_hcas)];
    }
  }
  std::map<std::string, std::pair<std::size_t, int>>
      fullest;  // type -> the first of its fullest switches, their number
  for (std::size_t s = 0; s < cables.size(); ++s) {
    const auto& type = fabric.switches[s].type;
    const auto ports = values.find(type, "ports");
    if (!ports || cables[s] <= static_cast<int>(*ports)) continue;
    auto& [worst, number] = fullest.try_emplace(type, s, 0).first->second;
    ++number;
    if (cables[s] > cables[worst]) worst = s;
  }
  for (const auto& [type, entry] : fullest) {
    const auto [worst, number] = entry;
    const auto others = number > 1 ? fmt::format(" ({} switches have too many)", number) : std::string{};
    values.error(fabric.switches[worst].location,
                 fmt::format("{} cables end at switch '{}', a {} has {} ports{}", cables[worst],
                             fabric.switches[worst].name, type, *values.find(type, "ports"), others),
                 "take a switch with more ports, more switches or fewer cables");
  }
}

}  // namespace fabricast::topology
