// SPDX-License-Identifier: Apache-2.0
// Switches and cables written one by one, and the count of ports that every fabric must pass.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "topology/fabric.hpp"

namespace fabricast::topology {

namespace {

constexpr double k_any_rate = 1e18;
constexpr double k_rate_rounding = 1.001;  ///< 25.78 Gb/s lanes and the like

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
    fabric.switches.push_back({one.name, one.type, {}, {}, one.location});
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
    fabric.cables.push_back({a, b, spec.rate ? spec.rate->bytes_per_s : 0, spec.length_m.value_or(default_length_m),
                             "cable.rate", spec.location});
}

/// The same two ends listed twice are a slip: several cables between them are one line with a count.
void check_repeated(const std::vector<CableSpec>& cables, DeviceValues& values) {
  std::map<std::pair<std::string, std::string>, SourceLocation> known;
  for (const auto& cable : cables) {
    const auto ends = std::minmax(cable.from, cable.to);
    const auto [first, is_new] = known.try_emplace({ends.first, ends.second}, cable.location);
    if (is_new || cable.from == cable.to) continue;
    auto fault =
        make_error_at(cable.location, fmt::format("the cable from '{}' to '{}' is listed twice", cable.from, cable.to),
                      "give several cables between two ends as one with `count:`");
    fault.notes.push_back({"the first one", first->second});
    values.report(std::move(fault));
  }
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
  check_repeated(spec.cables, values);
}

int cables_per_port(DeviceValues& values, const std::string& switch_type, double rate) {
  const double most = values.value_or(switch_type, "port_split", 1);
  const double port = values.value_or(switch_type, "rate", 0);
  int count = 1;
  while (rate > 0 && 2 * count <= most && 2 * count * rate <= port * k_rate_rounding) count *= 2;
  return count;
}

int ports_of(const std::map<int, int>& cables_by_split) {
  int ports = 0;
  for (const auto& [split, cables] : cables_by_split) ports += (cables + split - 1) / split;
  return ports;
}

namespace {

/// bytes/s of a cable: the slowest of what is said of it and both ends.
double rate_of(const Cable& cable, const Fabric& fabric, const std::vector<HcaPort>& hcas, DeviceValues& values) {
  double rate = cable.rate > 0 ? cable.rate : k_any_rate;
  for (const int end : {cable.a, cable.b}) {
    const auto index = static_cast<std::size_t>(end);
    const auto& type = index < hcas.size() ? hcas[index].type : fabric.switches[index - hcas.size()].type;
    rate = std::min(rate, values.value_or(type, "rate", k_any_rate));
  }
  return rate;
}

void check_hca_ports(const std::vector<int>& cables, const Fabric& fabric, const std::vector<HcaPort>& hcas,
                     DeviceValues& values) {
  std::set<std::string> reported;
  for (std::size_t h = 0; h < hcas.size(); ++h) {
    const int ports = static_cast<int>(values.value_or(hcas[h].type, "ports", cables[h]));
    if (cables[h] <= ports || !reported.insert(hcas[h].type).second) continue;
    const auto second = std::find_if(fabric.cables.rbegin(), fabric.cables.rend(), [&](const Cable& cable) {
      return cable.a == static_cast<int>(h) || cable.b == static_cast<int>(h);
    });
    values.error(second->location,
                 fmt::format("{} cables end at HCA '{}', a {} has {} port{}", cables[h], hcas[h].name, hcas[h].type,
                             ports, ports == 1 ? "" : "s"),
                 "remove cables, or give the host more HCAs");
  }
}

}  // namespace

void check_ports(const Fabric& fabric, const std::vector<HcaPort>& hcas, DeviceValues& values) {
  const std::size_t num_hcas = hcas.size();
  std::vector<int> at_hcas(num_hcas, 0);
  std::vector<std::map<int, int>> by_split(fabric.switches.size());
  std::vector<int> cables(fabric.switches.size(), 0);
  for (const auto& cable : fabric.cables) {
    const double rate = rate_of(cable, fabric, hcas, values);
    for (const int end : {cable.a, cable.b}) {
      const auto index = static_cast<std::size_t>(end);
      if (index < num_hcas) {
        ++at_hcas[index];
        continue;
      }
      const auto& type = fabric.switches[index - num_hcas].type;
      ++cables[index - num_hcas];
      ++by_split[index - num_hcas][cables_per_port(values, type, rate)];
    }
  }
  check_hca_ports(at_hcas, fabric, hcas, values);
  std::map<std::string, std::pair<std::size_t, int>>
      fullest;  // type -> the first of its fullest switches, their number
  for (std::size_t s = 0; s < cables.size(); ++s) {
    const auto& type = fabric.switches[s].type;
    const auto ports = values.find(type, "ports");
    if (!ports || ports_of(by_split[s]) <= static_cast<int>(*ports)) continue;
    auto& [worst, number] = fullest.try_emplace(type, s, 0).first->second;
    ++number;
    if (cables[s] > cables[worst]) worst = s;
  }
  for (const auto& [type, entry] : fullest) {
    const auto [worst, number] = entry;
    const auto others = number > 1 ? fmt::format(" ({} switches have too many)", number) : std::string{};
    const int needed = ports_of(by_split[worst]);
    const auto split = needed < cables[worst] ? fmt::format(", which fill {} ports with splitters", needed) : "";
    values.error(fabric.switches[worst].location,
                 fmt::format("{} cables end at switch '{}'{}, a {} has {} ports{}", cables[worst],
                             fabric.switches[worst].name, split, type, *values.find(type, "ports"), others),
                 "take a switch with more ports, more switches or fewer cables");
  }
}

}  // namespace fabricast::topology
