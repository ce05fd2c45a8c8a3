// SPDX-License-Identifier: Apache-2.0
// The network for other tools: `ibnetdiscover` / `ibsim` [linux-rdma/ibsim], Slurm [topology.conf(5),
// topology.yaml(5)], SimGrid's platform XML [simgrid.org, version 4.1 of the DTD].
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "fabricast/export.hpp"

namespace fabricast {

namespace {

Diagnostics no_fabric(const Topology& topology) {
  return {make_error(fmt::format("'{}' has no network to write", topology.name()),
                     "describe one under `fabric:`, or import it with --fabric")};
}

/// Network links that start at each device, in order; both directions are there.
std::map<std::int32_t, std::vector<LinkId>> links_by_device(const Topology& topology) {
  std::map<std::int32_t, std::vector<LinkId>> out;
  for (int i = topology.first_network_link(); i < topology.num_links(); ++i)
    out[topology.link(LinkId{i}).from.value].push_back(LinkId{i});
  return out;
}

/// "4xHDR" by the rate of a cable.
std::string width_and_speed(double gbit_per_s) {
  struct Entry {
    double rate;
    const char* text;
  };
  static constexpr Entry entries[] = {{8, "4xSDR"},   {16, "4xDDR"},  {32, "4xQDR"},  {54.5, "4xFDR"},
                                      {100, "4xEDR"}, {200, "4xHDR"}, {400, "4xNDR"}, {800, "4xXDR"}};
  const auto* best = &entries[0];
  for (const auto& one : entries) {
    if (std::abs(std::log(one.rate / gbit_per_s)) < std::abs(std::log(best->rate / gbit_per_s))) best = &one;
  }
  return best->text;
}

/// What on the network is not InfiniBand: its type and protocol; empty when nothing says so.
std::string foreign_device(const Topology& topology) {
  for (const auto& [device, links] : links_by_device(topology)) {
    const auto type = topology.device(DeviceId{device}).type;
    const auto protocol = topology.attribute(type, "protocol");
    if (!protocol.empty() && protocol != "infiniband") return fmt::format("{} ({})", type, protocol);
  }
  return {};
}

class IbWriter {
 public:
  explicit IbWriter(const Topology& topology) : topology_(topology), links_(links_by_device(topology)) {}

  std::string write() {
    // A cable's two ends get the numbers of their ports in the order of the links.
    for (const auto& [device, links] : links_) {
      for (const auto link : links) ports_[link.value] = ++used_[device];
    }
    std::string out = "# written for ibsim; ibnetdiscover prints it back\n\n";
    for (const auto& [device, links] : links_) {
      if (topology_.kind(DeviceId{device}) == DeviceKind::network_switch) out += node(device, links, true);
    }
    for (const auto& [device, links] : links_) {
      if (topology_.kind(DeviceId{device}) != DeviceKind::network_switch) out += node(device, links, false);
    }
    return out;
  }

 private:
  /// "node0.hca1" -> "node0 hca1": the first word of an adapter's description is its host.
  [[nodiscard]] std::string name(DeviceId id) const {
    auto text = topology_.device(id).name;
    if (topology_.kind(id) == DeviceKind::network_switch) return text;
    const auto dot = text.rfind('.');
    if (dot != std::string::npos) text[dot] = ' ';
    return text;
  }

  std::string node(std::int32_t device, const std::vector<LinkId>& links, bool is_switch) {
    const auto guid = 0x100000 + 0x100 * static_cast<std::int64_t>(device);
    const int ports = is_switch ? std::max<int>(36, static_cast<int>(links.size())) : static_cast<int>(links.size());
    const auto text = name(DeviceId{device});
    std::string out = is_switch ? fmt::format("switchguid=0x{:x}({:x})\nSwitch\t{} \"{}\"\t\t# \"{}\"\n", guid, guid,
                                              ports, text, text)
                                : fmt::format("caguid=0x{:x}\nCa\t{} \"{}\"\t\t# \"{}\"\n", guid, ports, text, text);
    for (const auto link : links) {
      const auto one = topology_.link(link);
      const auto back = topology_.reverse(link);
      const double rate = one.bandwidth.bytes_per_s * 8e-9;
      out += fmt::format("[{}]\t\"{}\"[{}]\t\t# \"{}\" lid 0 {}\n", ports_[link.value], name(one.to),
                         ports_[back.value], name(one.to), width_and_speed(rate));
    }
    return out + "\n";
  }

  const Topology& topology_;
  std::map<std::int32_t, std::vector<LinkId>> links_;
  std::map<std::int32_t, int> ports_;  ///< link -> port it leaves from
  std::map<std::int32_t, int> used_;
};

/// node0, node1, node2 -> node[0-2], in order of the names.
std::string hostlist(std::vector<std::string> names) {
  std::map<std::pair<std::string, std::size_t>, std::vector<int>> by_prefix;  // prefix and digits (0 = unpadded)
  std::vector<std::string> out;
  for (const auto& name : names) {
    auto begin = name.size();
    while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
    if (begin == name.size() || name.size() - begin > 8) {
      out.push_back(name);
      continue;
    }
    const auto digits = name.substr(begin);
    by_prefix[{name.substr(0, begin), digits[0] == '0' && digits.size() > 1 ? digits.size() : 0}].push_back(
        std::stoi(digits));
  }
  for (auto& [key, numbers] : by_prefix) {
    std::sort(numbers.begin(), numbers.end());
    std::string inside;
    for (std::size_t i = 0; i < numbers.size();) {
      auto last = i;
      while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
      inside += inside.empty() ? "" : ",";
      inside += fmt::format("{:0{}}", numbers[i], key.second);
      if (last > i) inside += fmt::format("-{:0{}}", numbers[last], key.second);
      i = last + 1;
    }
    out.push_back(numbers.size() == 1 ? key.first + inside : key.first + "[" + inside + "]");
  }
  return fmt::format("{}", fmt::join(out, ","));
}

struct SlurmSwitch {
  std::string name;
  std::vector<std::string> hosts, children;
};

/// Leaves (or the rails that a set of hosts shares), then one switch per group that further switches join.
std::vector<SlurmSwitch> slurm_tree(const Topology& topology) {
  std::map<std::set<std::int32_t>, std::vector<std::string>> groups;  // switches a host is cabled to -> hosts
  const auto links = links_by_device(topology);
  for (int host = 0; host < topology.num_hosts(); ++host) {
    std::set<std::int32_t> above;
    for (const auto hca : topology.devices(DeviceKind::hca, host)) {
      for (const auto link : topology.uplinks(hca)) above.insert(topology.link(link).to.value);
    }
    if (!above.empty()) groups[above].push_back(topology.host_name(host));
  }
  std::vector<SlurmSwitch> out;
  std::vector<std::pair<std::string, std::set<std::int32_t>>> level;  // name, switches it stands for
  for (const auto& [switches, hosts] : groups) {
    const auto first = topology.device(DeviceId{*switches.begin()}).name;
    const auto name = switches.size() == 1 ? first : fmt::format("{}-and-{}-more", first, switches.size() - 1);
    out.push_back({name, hosts, {}});
    level.emplace_back(name, switches);
  }
  for (int tier = 1; level.size() > 1 && tier < 8; ++tier) {
    // Groups that share a switch above belong together.
    std::vector<std::set<std::int32_t>> above(level.size());
    for (std::size_t i = 0; i < level.size(); ++i) {
      for (const auto one : level[i].second) {
        for (const auto link : links.count(one) != 0 ? links.at(one) : std::vector<LinkId>{}) {
          const auto to = topology.link(link).to;
          if (topology.kind(to) == DeviceKind::network_switch && !level[i].second.contains(to.value))
            above[i].insert(to.value);
        }
      }
    }
    std::vector<std::size_t> group(level.size());
    std::iota(group.begin(), group.end(), std::size_t{0});
    for (std::size_t i = 0; i < level.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const bool is_joined =
            std::any_of(above[i].begin(), above[i].end(), [&](auto s) { return above[j].contains(s); });
        if (!is_joined) continue;
        const auto from = group[i], to = group[j];
        for (auto& g : group) g = g == from ? to : g;
      }
    }
    std::map<std::size_t, std::vector<std::size_t>> members;
    for (std::size_t i = 0; i < level.size(); ++i) members[group[i]].push_back(i);
    std::vector<std::pair<std::string, std::set<std::int32_t>>> next;
    const bool is_same = members.size() == level.size();
    for (const auto& [g, list] : members) {
      SlurmSwitch one{members.size() == 1 || is_same ? "core" : fmt::format("tier{}-{}", tier, next.size()), {}, {}};
      std::set<std::int32_t> switches;
      for (const auto i : is_same ? [&] { std::vector<std::size_t> all(level.size()); std::iota(all.begin(), all.end(), std::size_t{0}); return all; }() : list) {
        one.children.push_back(level[i].first);
        switches.insert(above[i].begin(), above[i].end());
      }
      next.emplace_back(one.name, switches);
      out.push_back(std::move(one));
      if (is_same) break;
    }
    level = std::move(next);
  }
  return out;
}

}  // namespace

Result<std::string> ib_net_file(const Topology& topology) {
  if (topology.first_network_link() == topology.num_links()) return tl::unexpected(no_fabric(topology));
  if (const auto foreign = foreign_device(topology); !foreign.empty())
    return tl::unexpected(Diagnostics{
        make_error(fmt::format("the fabric of '{}' is not InfiniBand, which ibnetdiscover lists: {} is on it",
                               topology.name(), foreign),
                   "write it as slurm, slurm-yaml, simgrid or dot")});
  return IbWriter(topology).write();
}

Result<std::string> slurm_topology(const Topology& topology, bool is_yaml) {
  if (topology.first_network_link() == topology.num_links()) return tl::unexpected(no_fabric(topology));
  const auto tree = slurm_tree(topology);
  std::string out =
      is_yaml ? fmt::format("---\n- topology: {}\n  cluster_default: true\n  tree:\n    switches:\n", topology.name())
              : fmt::format("# {}: TopologyPlugin=topology/tree\n", topology.name());
  for (const auto& one : tree) {
    const auto& names = one.hosts.empty() ? one.children : one.hosts;
    const auto list = hostlist(names);
    if (is_yaml)
      out +=
          fmt::format("      - switch: {}\n        {}: {}\n", one.name, one.hosts.empty() ? "children" : "nodes", list);
    else
      out += fmt::format("SwitchName={} {}={}\n", one.name, one.hosts.empty() ? "Switches" : "Nodes", list);
  }
  return out;
}

Result<std::string> simgrid_platform(const Topology& topology, const ParameterSet& parameters) {
  if (topology.first_network_link() == topology.num_links()) return tl::unexpected(no_fabric(topology));
  std::string hosts, links, routes;
  std::set<int> seen;
  const auto end_name = [&](DeviceId id) {
    // A host stands for its adapters: SimGrid's actors live on hosts.
    return topology.kind(id) == DeviceKind::network_switch ? topology.device(id).name
                                                           : topology.host_name(topology.host_of(id));
  };
  for (int host = 0; host < topology.num_hosts(); ++host) {
    const auto* cores = parameters.find(topology.host_spec(host).processor + ".cores");
    const double count = cores == nullptr ? 1 : cores->value * topology.host_spec(host).num_sockets;
    hosts += fmt::format("    <host id=\"{}\" speed=\"1Gf\" core=\"{:.0f}\"/>\n", topology.host_name(host),
                         std::max(1.0, count));
  }
  for (const auto sw : topology.devices(DeviceKind::network_switch))
    hosts += fmt::format("    <router id=\"{}\"/>\n", topology.device(sw).name);
  std::map<std::pair<std::string, std::string>, int> first;  // parallel cables: one link of their sum
  std::map<std::pair<std::string, std::string>, std::pair<double, double>> sum;
  for (int i = topology.first_network_link(); i < topology.num_links(); ++i) {
    const auto one = topology.link(LinkId{i});
    const auto key = std::pair(end_name(one.from), end_name(one.to));
    auto latency = one.latency.seconds();
    // A switch's forwarding is paid on the way out of it; an adapter's own latency is half of what both ends take.
    if (topology.kind(one.from) == DeviceKind::network_switch)
      latency += topology.device(one.from).forwarding_latency.seconds();
    const auto hca = topology.kind(one.from) == DeviceKind::hca ? one.from
                     : topology.kind(one.to) == DeviceKind::hca ? one.to
                                                                : DeviceId{};
    if (hca.value >= 0) latency += parameters.value_or(topology.device(hca).type, "latency", 0) / 2;
    auto& both = sum[key];
    both.first += one.bandwidth.bytes_per_s;
    both.second = std::max(both.second, latency);
    if (first.try_emplace(key, i).second) seen.insert(i);
  }
  for (const auto& [key, i] : first) {
    const auto& [rate, latency] = sum[key];
    links += fmt::format("    <link id=\"l{}\" bandwidth=\"{:.0f}Bps\" latency=\"{:.12g}s\"/>\n", i, rate, latency);
    routes += fmt::format("    <route src=\"{}\" dst=\"{}\" symmetrical=\"NO\"><link_ctn id=\"l{}\"/></route>\n",
                          key.first, key.second, i);
  }
  return fmt::format(
      "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform "
      "version=\"4.1\">\n"
      "  <zone id=\"cluster\" routing=\"DijkstraCache\">\n{}{}{}  </zone>\n</platform>\n",
      hosts, links, routes);
}

std::string nccl_tuner_file(const std::string& collective, const std::vector<TunerChoice>& choices, int num_hosts,
                            int num_ranks, const std::vector<std::string>& comments) {
  std::string out;
  for (const auto& comment : comments) out += "# " + comment + "\n";
  out += "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff\n";
  const auto between = [](Bytes a, Bytes b) {
    return static_cast<std::int64_t>(
        std::sqrt(static_cast<double>(std::max<std::int64_t>(1, a.value)) * static_cast<double>(b.value)));
  };
  for (std::size_t i = 0; i < choices.size();) {
    auto last = i;
    const auto is_equal = [&](const TunerChoice& other) {
      return other.algorithm == choices[i].algorithm && other.protocol == choices[i].protocol &&
             other.channels == choices[i].channels;
    };
    while (last + 1 < choices.size() && is_equal(choices[last + 1])) ++last;
    if (!choices[i].algorithm.empty()) {
      const auto from = i == 0 ? choices[i].size.value : between(choices[i - 1].size, choices[i].size) + 1;
      const auto to =
          last + 1 == choices.size() ? choices[last].size.value : between(choices[last].size, choices[last + 1].size);
      out += fmt::format("{},{},{},{},{},{},{},{},-1,-1\n", collective, from, to, choices[i].algorithm,
                         choices[i].protocol, choices[i].channels, num_hosts, num_ranks);
    }
    i = last + 1;
  }
  return out;
}

}  // namespace fabricast
