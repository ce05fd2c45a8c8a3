// SPDX-License-Identifier: Apache-2.0
#include "training/group_places.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace fabricast::models::training {

namespace {

/// Disjoint sets of numbers from 0.
class Sets {
 public:
  explicit Sets(std::size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), 0); }

  int of(int one) {
    while (parent(one) != one) one = parent(one) = parent(parent(one));
    return one;
  }
  void join(int one, int other) { parent(of(one)) = of(other); }

 private:
  int& parent(int one) { return parents_[static_cast<std::size_t>(one)]; }

  std::vector<int> parents_;
};

std::vector<Neighbourhood> meeting(const Topology& topology, const std::vector<std::vector<DeviceId>>& groups) {
  const auto machine_of = [&](DeviceId gpu) { return topology.machine_of(topology.host_of(gpu)); };
  Sets machines(static_cast<std::size_t>(topology.num_hosts()));
  for (const auto& group : groups)
    for (const auto gpu : group) machines.join(machine_of(gpu), machine_of(group.front()));
  std::map<int, std::size_t> places;
  std::vector<Neighbourhood> out;
  for (const auto& group : groups) {
    const auto [place, is_new] = places.try_emplace(machines.of(machine_of(group.front())), out.size());
    if (is_new) out.emplace_back();
    out[place->second].groups.push_back(group);
  }
  return out;
}

/// Sets the hosts of `one`; returns what neighbourhoods that are like it share: shapes of the hosts, which of them are
/// on one machine, and where on them the GPUs of each group lie.
std::vector<int> place(const Topology& topology, Neighbourhood& one) {
  std::map<int, int> hosts, machines;
  std::vector<int> out;
  for (const auto& group : one.groups) {
    out.push_back(static_cast<int>(group.size()));
    for (const auto gpu : group) {
      const int host = topology.host_of(gpu);
      const auto [known, is_new] = hosts.try_emplace(host, static_cast<int>(one.hosts.size()));
      out.push_back(known->second);
      out.push_back(topology.ordinal(gpu));
      if (!is_new) continue;
      one.hosts.push_back(host);
      out.push_back(topology.host_shape(host));
      out.push_back(machines.try_emplace(topology.machine_of(host), known->second).first->second);
    }
  }
  return out;
}

bool is_on_one_machine(const Topology& topology, const std::vector<int>& hosts) {
  return std::ranges::all_of(hosts,
                             [&](int host) { return topology.machine_of(host) == topology.machine_of(hosts.front()); });
}

}  // namespace

std::vector<Neighbourhood> neighbourhoods_of(const Topology& topology,
                                             const std::vector<std::vector<DeviceId>>& groups) {
  std::map<std::vector<int>, std::size_t> known;
  std::vector<Neighbourhood> out;
  for (auto& one : meeting(topology, groups)) {
    const auto [first, is_new] = known.try_emplace(place(topology, one), out.size());
    if (is_new) {
      out.push_back(std::move(one));
    } else if (!is_on_one_machine(topology, one.hosts)) {
      out[first->second].likes.push_back(std::move(one.hosts));
    }
  }
  return out;
}

}  // namespace fabricast::models::training
