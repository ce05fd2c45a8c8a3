// SPDX-License-Identifier: Apache-2.0
#include "cli/mpi_platform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "fabricast/models/payload.hpp"
#include "fabricast/simulate.hpp"

namespace fabricast::cli {

namespace {

constexpr int k_most_routed = 256;  ///< hosts: 65,280 ways
constexpr Duration k_least{1000};   ///< latency of a way, so that factors of it mean something
constexpr std::size_t k_most_ways = 8;

double rate_of(const Topology& topology, DeviceId hca) {
  double rate = 0;
  for (const auto link : topology.uplinks(hca)) rate += topology.link_bandwidth(link).bytes_per_s;
  return rate;
}

/// The adapter nearest to a host's first memory of its fastest ones, as ranks choose theirs.
DeviceId adapter_of(const Topology& topology, int host) {
  const auto memories = topology.devices(DeviceKind::memory, host);
  const auto hcas = memories.empty() ? std::vector<DeviceId>{} : topology.hcas_by_distance(memories.front());
  const auto fastest = std::ranges::max_element(hcas, {}, [&](DeviceId hca) { return rate_of(topology, hca); });
  return fastest == hcas.end() ? DeviceId{} : *fastest;
}

/// Adapters that one message is striped over: as many as its rate needs. Each has a way of its own.
double num_rails(const Topology& topology, DeviceId hca, double rate) {
  const double one = rate_of(topology, hca);
  return one > 0 ? std::max(1.0, std::ceil(rate / one)) : 1;
}

class Writer {
 public:
  Writer(const Topology& topology, const Platform& platform) : topology_(topology), platform_(platform) {}

  void add_hosts() {
    for (int host = 0; host < topology_.num_hosts(); ++host) {
      hosts_ += fmt::format("    <host id=\"{}\" speed=\"1Gf\" core=\"1024\"/>\n", topology_.host_name(host));
      for (const auto* way : {"up", "down"}) add_link(fmt::format("{}{}", way, host), platform_.rate);
      if (platform_.rate_inside <= 0) continue;
      links_ +=
          fmt::format("    <link id=\"in{}\" bandwidth=\"{:.0f}Bps\" latency=\"0s\" sharing_policy=\"FATPIPE\"/>\n",
                      host, platform_.rate_inside);
      routes_ += fmt::format("    <route src=\"{0}\" dst=\"{0}\"><link_ctn id=\"in{1}\"/></route>\n",
                             topology_.host_name(host), host);
    }
  }

  /// The way's latency is a link of its own: SimGrid adds up the links'.
  void add_way(int from, int to, const Path& path, double share) {
    auto names = fmt::format("<link_ctn id=\"up{}\"/>", from);
    for (const auto id : path.links) {
      const auto link = topology_.link(id);
      const bool is_between = topology_.kind(link.from) == DeviceKind::network_switch &&
                              topology_.kind(link.to) == DeviceKind::network_switch;
      if (!is_between) continue;
      if (const auto spread = topology_.spread_of(id)) {
        for (const auto* shared : {spread->out, spread->in}) {
          if (shared == nullptr) continue;
          const auto name = fmt::format("s{}-{}-{}", static_cast<int>(shared->over), shared->at.value, shared->is_out);
          names += add_together(name, shared->links, share);
        }
      } else {
        names += add_together(fmt::format("l{}", id.value), {id}, share);
      }
    }
    routes_ += fmt::format(
        "    <route src=\"{}\" dst=\"{}\" symmetrical=\"NO\">{}<link_ctn id=\"{}\"/><link_ctn "
        "id=\"down{}\"/></route>\n",
        topology_.host_name(from), topology_.host_name(to), names,
        latency_link(from, to, std::max(k_least, path.latency)), to);
  }

  void add_star(Duration latency) {
    const auto name = latency_link(0, 1, std::max(k_least, latency));
    hosts_ += "    <router id=\"network\"/>\n";
    for (int host = 0; host < topology_.num_hosts(); ++host)
      routes_ += fmt::format(
          "    <route src=\"{0}\" dst=\"network\" symmetrical=\"NO\"><link_ctn id=\"up{1}\"/><link_ctn "
          "id=\"{2}\"/></route>\n"
          "    <route src=\"network\" dst=\"{0}\" symmetrical=\"NO\"><link_ctn id=\"down{1}\"/></route>\n",
          topology_.host_name(host), host, name);
  }

  [[nodiscard]] const std::vector<NetworkWay>& ways() const { return ways_; }
  [[nodiscard]] std::string xml(bool is_star) const {
    return fmt::format(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<platform version=\"4.1\">\n  <zone id=\"cluster\" routing=\"{}\">\n{}{}{}  </zone>\n</platform>\n",
        is_star ? "DijkstraCache" : "Full", hosts_, links_, routes_);
  }

 private:
  std::string latency_link(int from, int to, Duration latency) {
    const auto known =
        std::find_if(ways_.begin(), ways_.end(), [&](const NetworkWay& one) { return one.latency == latency; });
    auto name = fmt::format("t{}", latency.ps);
    if (!seen_times_.insert(latency.ps).second) return name;
    if (known == ways_.end() && ways_.size() < k_most_ways) ways_.push_back({latency, from, to});
    links_ +=
        fmt::format("    <link id=\"{}\" bandwidth=\"1e15Bps\" latency=\"{:.12g}s\" sharing_policy=\"FATPIPE\"/>\n",
                    name, latency.seconds());
    return name;
  }
  /// A link as wide as `links` together, made when new; its mention in a route.
  std::string add_together(const std::string& name, const std::vector<LinkId>& links, double share) {
    double rate = 0;
    for (const auto link : links) rate += topology_.link_bandwidth(link).bytes_per_s;
    if (seen_.insert(name).second) add_link(name, rate * share);
    return fmt::format("<link_ctn id=\"{}\"/>", name);
  }
  void add_link(const std::string& name, double rate) {
    links_ += fmt::format("    <link id=\"{}\" bandwidth=\"{:.0f}Bps\" latency=\"0s\"/>\n", name, rate);
  }

  const Topology& topology_;
  const Platform& platform_;
  std::string hosts_, links_, routes_;
  std::set<std::string> seen_;  ///< names of links
  std::set<std::int64_t> seen_times_;
  std::vector<NetworkWay> ways_;
};

}  // namespace

SimgridNetwork simgrid_network(const Topology& topology, const ParameterSet& parameters, int num_ranks, int per_host,
                               const Platform& platform) {
  Writer writer(topology, platform);
  writer.add_hosts();
  const int used = std::min(topology.num_hosts(), std::max(2, (num_ranks + per_host - 1) / per_host));
  const bool is_star = used > k_most_routed;
  const auto way = [&](int from, int to) {
    const auto rank = static_cast<std::uint64_t>(from) * static_cast<std::uint64_t>(per_host);
    const auto flow = rank + SimulateOptions{}.seed;
    return topology.path_between_hcas(adapter_of(topology, from), adapter_of(topology, to), flow).value_or(Path{});
  };
  if (is_star) writer.add_star(way(0, 1).latency);
  for (int from = 0; from < used && !is_star; ++from) {
    const auto adapter = adapter_of(topology, from);
    const double share = models::payload_share(topology, parameters, topology.device(adapter).type) *
                         num_rails(topology, adapter, platform.rate);
    for (int to = 0; to < used; ++to) {
      if (from != to) writer.add_way(from, to, way(from, to), share);
    }
  }
  return {writer.xml(is_star), writer.ways()};
}

}  // namespace fabricast::cli
