// SPDX-License-Identifier: Apache-2.0
#include "sweep/fault_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace fabricast::sweep {

namespace {

/// Hosts at the ends of cables.
std::vector<int> hosts_at(const Topology& topology, const std::vector<LinkId>& links) {
  std::set<int> out;
  for (const auto id : links) {
    const auto link = topology.link(id);
    for (const auto end : {link.from, link.to}) {
      if (const int host = topology.host_of(end); host >= 0) out.insert(host);
    }
  }
  return {out.begin(), out.end()};
}

class Lister {
 public:
  /// `each`: equal faults are listed one by one, to be drawn together.
  Lister(const Topology& topology, const JobPlace& job, bool each) : topology_(topology), job_(job), each_(each) {
    for (int id = topology.first_network_link(); id < topology.num_links(); id += 2) {
      const auto link = topology.link({id});
      for (const auto end : {link.from, link.to}) cables_[end.value].push_back({id});
    }
  }

  void add(const FaultClass& one, std::vector<Fault>& out) const {
    switch (one.kind) {
      case FaultKind::link:
        return add_links(out);
      case FaultKind::hca:
        return add_devices(topology_.devices(DeviceKind::hca), "adapter", false, out);
      case FaultKind::leaf:
        return add_devices(topology_.devices(DeviceKind::network_switch), "leaf", true, out);
      case FaultKind::any_switch:
        return add_devices(topology_.devices(DeviceKind::network_switch), "switch", false, out);
      case FaultKind::host:
        return add_hosts(out);
      case FaultKind::slow_gpu:
        return add_slow(one.slower, out);
    }
  }

 private:
  void add_links(std::vector<Fault>& out) const {
    for (int id = topology_.first_network_link(); id < topology_.num_links(); id += 2) {
      const auto link = topology_.link({id});
      Fault fault;
      fault.name = fmt::format("cable {} - {}", topology_.device(link.from).name, topology_.device(link.to).name);
      fault.links = {{id}};
      fault.hosts = hosts_at(topology_, fault.links);
      out.push_back(std::move(fault));
    }
  }

  /// `only_edge`: switches that hosts are cabled to.
  void add_devices(const std::vector<DeviceId>& devices, const char* what, bool only_edge,
                   std::vector<Fault>& out) const {
    for (const auto device : devices) {
      const auto found = cables_.find(device.value);
      if (found == cables_.end()) continue;
      Fault fault;
      fault.name = fmt::format("{} {}", what, topology_.device(device).name);
      fault.links = found->second;
      fault.hosts = hosts_at(topology_, fault.links);
      if (only_edge && fault.hosts.empty()) continue;
      out.push_back(std::move(fault));
    }
  }

  void add_hosts(std::vector<Fault>& out) const {
    int first = 0;
    for (const auto& group : topology_.spec().hosts) {
      std::vector<Fault> equal;  // in the job, beside it
      for (int host = first; host < first + group.count; ++host) {
        const bool is_idle = !job_.hosts.contains(host);
        const auto name = fmt::format("{}host of group {}", is_idle ? "idle " : "", group.name);
        add_equal({name, 1, {}, {host}, {host}, 0}, equal);
      }
      out.insert(out.end(), equal.begin(), equal.end());
      first += group.count;
    }
  }

  void add_slow(double slower, std::vector<Fault>& out) const {
    const auto name = fmt::format("a GPU that is {:g} % slower", 100 * slower);
    std::vector<Fault> equal;
    int in_job = 0;
    for (const auto gpu : topology_.devices(DeviceKind::gpu)) {
      const int host = topology_.host_of(gpu);
      const bool is_idle = !job_.hosts.contains(host) || in_job == job_.ranks;
      in_job += is_idle ? 0 : 1;
      add_equal({(is_idle ? "idle: " : "") + name, 1, {}, {host}, {}, is_idle ? 0 : slower}, equal);
    }
    out.insert(out.end(), equal.begin(), equal.end());
  }

  void add_equal(Fault fault, std::vector<Fault>& out) const {
    const auto same = std::ranges::find(out, fault.name, &Fault::name);
    if (each_ || same == out.end()) return out.push_back(std::move(fault));
    ++same->count;
  }

  const Topology& topology_;
  const JobPlace& job_;
  bool each_;
  std::map<std::int32_t, std::vector<LinkId>> cables_;
};

void join(Fault& into, const Fault& other) {
  into.name += (into.name.empty() ? "" : " + ") + other.name;
  into.links.insert(into.links.end(), other.links.begin(), other.links.end());
  for (const auto& [mine, its] : {std::pair{&into.hosts, &other.hosts}, std::pair{&into.broken, &other.broken}}) {
    for (const int host : *its) {
      if (std::ranges::find(*mine, host) == mine->end()) mine->push_back(host);
    }
  }
  into.slower = std::max(into.slower, other.slower);
}

}  // namespace

std::vector<Fault> faults_of(const Topology& topology, const JobPlace& job, const FaultPlan& plan) {
  std::vector<Fault> single;
  const Lister lister(topology, job, plan.simultaneous > 1);
  for (const auto& one : plan.classes) lister.add(one, single);
  if (plan.simultaneous <= 1 || single.empty()) return single;
  std::vector<std::size_t> places(single.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::vector<Fault> out;
  std::uint64_t state = plan.seed;
  const auto draw = [&](std::size_t below) {
    state += 0x9e3779b97f4a7c15ULL;  // splitmix64 [Steele, Lea & Flood, OOPSLA 2014]
    auto x = state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return static_cast<std::size_t>((x ^ (x >> 31)) % below);
  };
  const auto together = std::min(places.size(), static_cast<std::size_t>(plan.simultaneous));
  for (int sample = 0; sample < plan.samples; ++sample) {
    auto left = places;
    Fault fault;
    for (std::size_t k = 0; k < together; ++k) {
      const auto at = draw(left.size());
      join(fault, single[left[at]]);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
    }
    out.push_back(std::move(fault));
  }
  return out;
}

}  // namespace fabricast::sweep
