// SPDX-License-Identifier: Apache-2.0
#include "import/write_topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "import/identity.hpp"
#include "import/merge.hpp"
#include "import/source.hpp"

namespace fabricast::import {

namespace {

/// Names that are taken once.
class Names {
 public:
  std::string take(std::string wanted) {
    if (wanted.empty()) wanted = "x";
    if (wanted[0] == '-' || (wanted[0] >= '0' && wanted[0] <= '9')) wanted = "n" + wanted;
    auto name = wanted;
    for (int i = 2; !taken_.insert(name).second; ++i) name = fmt::format("{}-{}", wanted, i);
    return name;
  }

 private:
  std::set<std::string> taken_;
};

/// "MF0;ibswitch254:MQM8700/U1" -> ibswitch254.
std::string switch_name(const FabricNode& node) {
  std::string_view text = node.description;
  if (const auto semicolon = text.find(';'); semicolon != std::string_view::npos) {
    text.remove_prefix(semicolon + 1);
    const auto colon = text.find(':');
    const auto rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    auto name = std::string(text.substr(0, colon));
    const auto slash = rest.find('/');
    const bool is_director = slash != std::string_view::npos && rest.find('/', slash + 1) != std::string_view::npos;
    if (is_director) name += "-" + std::string(rest.substr(slash + 1));
    return clean_name(name);
  }
  const bool is_default = has(text, "Mellanox") || has(text, "Infiniscale") || text.empty();
  return clean_name(is_default ? std::string_view(node.id) : text);
}

/// Whether switches that have hosts are cabled to each other in a circle, so that ways between them can be chosen.
bool is_mesh(const FabricSeen& fabric) {
  std::set<std::string> all_switches, with_hosts;
  for (const auto& node : fabric.nodes)
    if (node.is_switch) all_switches.insert(node.id);
  for (const auto& node : fabric.nodes)
    for (const auto& [number, port] : node.ports)
      if (!node.is_switch && !node.is_aggregation && all_switches.contains(port.peer)) with_hosts.insert(port.peer);
  std::set<std::string> joined;
  std::set<std::pair<std::string, std::string>> pairs;
  for (const auto& node : fabric.nodes)
    for (const auto& [number, port] : node.ports) {
      if (!with_hosts.contains(node.id) || !with_hosts.contains(port.peer) || node.id == port.peer) continue;
      joined.insert({node.id, port.peer});
      pairs.insert(std::minmax(node.id, port.peer));
    }
  return !pairs.empty() && pairs.size() >= joined.size();
}

class TopologyWriter {
 public:
  TopologyWriter(Inventory& inventory, const ImportOptions& options) : inventory_(inventory), options_(options) {}

  Result<std::string> write() {
    for (auto& machine : inventory_.machines) {
      if (machine.devices.empty() && machine.distances) {
        auto built = machine_of_distances(machine, inventory_, options_);
        if (!built) return tl::unexpected(built.error());
        machine = std::move(*built);
      }
      settle_elastic_adapters(machine, inventory_);
      auto host = write_host(machine, inventory_, options_);
      if (!host) return tl::unexpected(host.error());
      if (!redirects(machine) && has(host->yaml, "kind: pcie_switch"))
        inventory_.assumed.push_back(
            "PCIe switches hand requests between devices below them on (no `acs: redirect`): no source says it, "
            "`lspci -Dnnvv` as root does");
      hosts_.push_back(std::move(*host));
    }
    virtualization_ = write_virtualization(inventory_);
    if (!inventory_.fabrics.empty()) {
      write_fabric(inventory_.fabrics.front());
    } else if (!inventory_.placements.empty()) {
      write_placement(inventory_.placements.front());
    } else {
      write_hosts_alone();
    }
    for (const auto& rest : {inventory_.fabrics.size(), inventory_.placements.size()}) {
      if (rest > 1) inventory_.unknown.push_back("further fabrics and placements: the first of each is written");
    }
    if (groups_.empty())
      return tl::unexpected(Diagnostics{
          make_error(inventory_.vms.empty() ? "the sources name no host"
                                            : "virtual machines say what a host wears, no source says what the host is",
                     "give a dump of a host with --host, or a fabric with adapters")});
    return head() + "hosts:\n" + groups_ + fabric_;
  }

 private:
  std::string head() {
    std::string out = "# yaml-language-server: $schema=topology.schema.json\n# Imported from\n";
    const auto add = [&](const std::vector<std::string>& lines, const char* what) {
      std::set<std::string> seen;
      for (const auto& line : lines) {
        if (!seen.insert(line).second) continue;
        if (seen.size() > 200) {
          out += fmt::format("# {}{} further\n", what, lines.size() - 200);
          break;
        }
        out += fmt::format("# {}{}\n", what, printable(line));
      }
    };
    add(inventory_.sources, "  ");
    add(inventory_.assumed, "assumed: ");
    add(inventory_.unknown, "unknown: ");
    return out + fmt::format("schema: fabricast/topology/1\nname: {}\n", yaml_quoted(options_.name));
  }

  void add_group(const std::string& name, int count, std::size_t host, const WrittenHost& written) {
    groups_ += fmt::format("  - name: {}\n", yaml_quoted(name));
    if (count > 1) groups_ += fmt::format("    count: {}\n", count);
    // Equal hosts are written once: an anchor, then aliases.
    if (anchored_.insert(host).second) {
      groups_ += fmt::format("    host: &host{}\n{}", host, written.yaml);
    } else {
      groups_ += fmt::format("    host: *host{}\n", host);
    }
    if (!virtualization_.empty()) groups_ += fmt::format("    virtualization: {}\n", virtualization_);
  }

  void write_hosts_alone() {
    Names names;
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      const auto& machine = inventory_.machines[i];
      const auto name = names.take(machine.name.empty()
                                       ? (hosts_.size() > 1 && options_.count == 0 ? fmt::format("node{}", i) : "node")
                                       : clean_name(machine.name.substr(0, machine.name.find('.'))));
      add_group(name, std::max(1, options_.count), i, hosts_[i]);
    }
    const bool is_one = hosts_.size() == 1 && options_.count <= 1;
    const bool has_hcas =
        std::any_of(hosts_.begin(), hosts_.end(), [](const WrittenHost& h) { return !h.hcas.empty(); });
    if (is_one && has_hcas)
      inventory_.unknown.push_back("the network: add --fabric, --placement, or `fabric:` by hand");
    if (is_one || !has_hcas) return;
    double rate = 0;
    for (const auto& host : hosts_) {
      for (const double r : host.rates) rate = std::max(rate, r);
    }
    const auto type = switch_identity(0, "", rate, hosts_.front().is_infiniband);
    inventory_.assumed.push_back("no source shows the network: one switch without oversubscription");
    if (!type.assumed.empty()) inventory_.assumed.push_back(type.assumed);
    fabric_ = fmt::format("fabric:\n  single_switch: {{switch: {}}}\n", type.name);
  }

  /// The description of a host of the fabric: one that a source shows, else adapters alone. Returns its number.
  std::size_t shape_of(const std::vector<ListedAdapter>& adapters) {
    if (!hosts_.empty() && hosts_.size() == inventory_.machines.size() + bare_.size()) {
      for (std::size_t i = 0; i < inventory_.machines.size(); ++i) {
        if (hosts_[i].hcas.size() == adapters.size()) return i;
      }
    }
    std::vector<std::pair<std::string, double>> key;
    for (const auto& one : adapters)
      key.emplace_back(adapter_of_listing(one.devid, one.gbit_per_s, true).name, one.gbit_per_s);
    const auto [it, is_new] = bare_.try_emplace(std::move(key), hosts_.size());
    if (is_new) hosts_.push_back(write_bare_host(adapters, true, inventory_, options_));
    return it->second;
  }

  void write_fabric(const FabricSeen& fabric) {
    const auto found = hosts_of(fabric, inventory_);
    if (!inventory_.placements.empty()) check_placement(inventory_.placements.front(), fabric, found, inventory_);
    Names names;
    std::map<std::string, std::string> ends;  // id of a node -> name of its end of a cable
    write_fabric_hosts(fabric, found, names, ends);
    std::string switches;
    for (const auto& node : fabric.nodes) {
      if (!node.is_switch) continue;
      double rate = 0;
      for (const auto& [number, port] : node.ports) rate = std::max(rate, port.gbit_per_s);
      const auto type = switch_identity(node.vendor_device, node.description, rate, true);
      if (!type.assumed.empty() && assumed_.insert(type.assumed).second) inventory_.assumed.push_back(type.assumed);
      const auto name = names.take(switch_name(node));
      ends[node.id] = name;
      switches += fmt::format("      - {{name: {}, type: {}}}  # {}\n", yaml_quoted(name), type.name,
                              printable(node.description));
    }
    const auto cables = cables_of(fabric, ends, inventory_);
    if (switches.empty() || cables.empty()) {
      Diagnostic cut;
      cut.severity = Severity::warning;
      cut.location = fabric.nodes.front().place;
      cut.message = fmt::format("the output has no {}: is it cut off? The hosts are written without a network",
                                switches.empty() ? "record of a switch" : "cable that both ends name");
      inventory_.findings.push_back(std::move(cut));
      return;
    }
    fabric_ = "fabric:\n  list:\n    switches:\n" + switches + "    cables:\n" + cables;
    inventory_.unknown.push_back("lengths of cables (3 m each)");
    if (is_mesh(fabric))
      inventory_.unknown.push_back(
          "how packets are routed: switches with hosts are cabled to each other (dragonfly, torus, mesh), shortest "
          "ways are taken; a generator of `fabric` has the routing of its kind");
  }

  /// The shape of a host of the fabric, with a finding where no source describes such a host.
  std::size_t shape_of_host(const FabricSeen& fabric, const FabricHost& host) {
    std::vector<ListedAdapter> adapters;
    for (const int node : host.nodes) {
      const auto& seen = fabric.nodes[static_cast<std::size_t>(node)];
      auto& adapter = adapters.emplace_back(ListedAdapter{0, seen.vendor_device});
      for (const auto& [number, port] : seen.ports) adapter.gbit_per_s = std::max(adapter.gbit_per_s, port.gbit_per_s);
    }
    const auto shape = shape_of(adapters);
    if (!inventory_.machines.empty() && shape >= inventory_.machines.size() && warned_.insert(adapters.size()).second)
      inventory_.findings.push_back(contradiction(
          fabric.nodes[static_cast<std::size_t>(host.nodes.front())].place,
          fmt::format("'{}' has {} adapters here", host.name, adapters.size()), inventory_.machines.front().place,
          fmt::format("the host described here has {}: hosts like this are written without GPUs",
                      hosts_.front().hcas.size())));
    return shape;
  }

  /// Hosts of one shape: one group where their names count from 0, or where there are so many that a list of them
  /// would not load; else one group each.
  void write_fabric_hosts(const FabricSeen& fabric, const std::vector<FabricHost>& found, Names& names,
                          std::map<std::string, std::string>& ends) {
    constexpr std::size_t k_most_alone = 200;
    std::map<std::size_t, std::vector<const FabricHost*>> by_shape;
    for (const auto& host : found) by_shape[shape_of_host(fabric, host)].push_back(&host);
    for (auto& [shape, members] : by_shape) {
      std::vector<std::string> called;
      const auto prefix = counted_prefix(members);
      const auto size = members.size();
      if (!prefix.empty() || size > k_most_alone) {
        const auto group = names.take(prefix.empty() ? "host" : prefix);
        add_group(group, static_cast<int>(size), shape, hosts_[shape]);
        for (std::size_t i = 0; i < size; ++i) {
          called.push_back(group + std::to_string(i));
          if (prefix.empty() && i < k_most_alone)
            inventory_.assumed.push_back(fmt::format("{} stands for '{}'", called.back(), members[i]->name));
        }
        if (prefix.empty())
          inventory_.assumed.push_back("so many hosts are numbered in the order of the fabric's list");
      } else {
        for (const auto* host : members) {
          called.push_back(names.take(host->name));
          add_group(called.back(), 1, shape, hosts_[shape]);
        }
      }
      for (std::size_t h = 0; h < size; ++h) {
        for (std::size_t i = 0; i < members[h]->nodes.size(); ++i)
          ends[fabric.nodes[static_cast<std::size_t>(members[h]->nodes[i])].id] =
              called[h] + "." + hosts_[shape].hcas[i];
      }
    }
  }

  /// "node" when the hosts are node0 to nodeN, which puts them in that order; else empty.
  static std::string counted_prefix(std::vector<const FabricHost*>& members) {
    const auto digits = [](const std::string& name) {
      std::size_t begin = name.size();
      while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
      return begin;
    };
    const auto prefix = members.front()->name.substr(0, digits(members.front()->name));
    if (members.size() < 2 || prefix.empty()) return "";
    std::vector<const FabricHost*> ordered(members.size(), nullptr);
    for (const auto* host : members) {
      const auto number = host->name.substr(std::min(digits(host->name), host->name.size()));
      const auto value = number_of(number, 10);
      const bool is_next = host->name.substr(0, digits(host->name)) == prefix && value &&
                           static_cast<std::size_t>(*value) < ordered.size() && std::to_string(*value) == number;
      if (!is_next || ordered[static_cast<std::size_t>(*value)] != nullptr) return "";
      ordered[static_cast<std::size_t>(*value)] = host;
    }
    members = std::move(ordered);
    return prefix;
  }

  /// Leaves and hosts from the scheduler: no rates, no number of cables.
  void write_placement(const PlacementSeen& placement) {
    if (hosts_.empty()) hosts_.push_back(write_bare_host({{100}}, true, inventory_, options_));
    const auto& shape = hosts_.front();
    double rate = 0;
    for (const double r : shape.rates) rate = std::max(rate, r);
    const auto type = switch_identity(0, "", rate, shape.is_infiniband);
    if (!type.assumed.empty()) inventory_.assumed.push_back(type.assumed);
    const int ports = switch_ports(type.name), adapters = static_cast<int>(shape.hcas.size());
    const auto up = placement_cables(placement, adapters, ports);
    std::size_t num_hosts = 0;
    for (const auto& one : placement.switches) num_hosts += one.hosts.size();
    if (!up || up->has_tier || num_hosts > k_most_listed) return write_placed_tree(placement, type.name, num_hosts);
    inventory_.assumed.push_back(fmt::format(
        "the scheduler knows switches, not cables: every adapter has one to its leaf, and leaves have as many up as "
        "down{}",
        up->is_cut ? fmt::format(", as far as a {} has ports ({}) for them", type.name, ports) : ""));
    Names names;
    std::map<std::string, std::string> switch_names;
    std::string switches, cables;
    for (const auto& one : placement.switches) {
      switch_names[one.name] = names.take(clean_name(one.name));
      switches += fmt::format("      - {{name: {}, type: {}}}\n", yaml_quoted(switch_names[one.name]), type.name);
    }
    for (const auto& leaf : placement.switches) {
      for (const auto& host : leaf.hosts) {
        const auto name = names.take(clean_name(host.substr(0, host.find('.'))));
        add_group(name, 1, 0, shape);
        for (const auto& hca : shape.hcas)
          cables += fmt::format("      - {{from: {}, to: {}}}\n", yaml_quoted(name + "." + hca),
                                yaml_quoted(switch_names[leaf.name]));
      }
    }
    for (const auto& [ends, count] : up->counts)
      cables += fmt::format("      - {{from: {}, to: {}, count: {}}}\n", yaml_quoted(switch_names[ends.first]),
                            yaml_quoted(switch_names[ends.second]), count);
    fabric_ = "fabric:\n  list:\n    switches:\n" + switches + "    cables:\n" + cables;
  }

  /// Switches of the scheduler that no single switch can be, or more hosts than a list can hold: a fat tree of real
  /// ones, with the hosts in the order of the scheduler's leaves.
  void write_placed_tree(const PlacementSeen& placement, const std::string& type, std::size_t num_hosts) {
    if (num_hosts == 0) return;
    const auto& shape = hosts_.front();
    const int ports = switch_ports(type), adapters = std::max(1, static_cast<int>(shape.hcas.size()));
    std::size_t largest = 1, first = 0;
    for (const auto& leaf : placement.switches) {
      largest = std::max(largest, leaf.hosts.size());
      if (leaf.hosts.empty()) continue;
      inventory_.assumed.push_back(fmt::format("node{} to node{} stand for those of '{}', '{}' on", first,
                                               first + leaf.hosts.size() - 1, leaf.name, leaf.hosts.front()));
      first += leaf.hosts.size();
    }
    const auto ends = num_hosts * static_cast<std::size_t>(adapters), most = static_cast<std::size_t>(ports);
    auto down = std::clamp(largest * static_cast<std::size_t>(adapters), std::size_t{1}, most / 2);
    if (ends > down * most * down) down = most / 2;  // too many leaves of that size
    const int tiers = ends > down * most ? 3 : 2;
    add_group("node", static_cast<int>(num_hosts), 0, shape);
    fabric_ = fmt::format("fabric:\n  fat_tree: {{switch: {}, tiers: {}, leaf_ports: {}}}\n", type, tiers, 2 * down);
    inventory_.assumed.push_back(
        fmt::format("the scheduler's switches hold more than a {} has ports, or more hosts than a list can: a fat tree "
                    "of them stands for the network, with hosts in the order of the leaves",
                    type));
  }

  static constexpr std::size_t k_most_listed = 1000;  ///< hosts by name, each a group of its own

  Inventory& inventory_;
  const ImportOptions& options_;
  std::vector<WrittenHost> hosts_;  ///< those that sources show, then bare ones
  /// By types and Gb/s of their adapters.
  std::map<std::vector<std::pair<std::string, double>>, std::size_t> bare_;
  std::set<std::size_t> anchored_, warned_;
  std::set<std::string> assumed_;
  std::string virtualization_, groups_, fabric_;
};

}  // namespace

Result<std::string> write_topology(Inventory& inventory, const ImportOptions& options) {
  return TopologyWriter(inventory, options).write();
}

}  // namespace fabricast::import
