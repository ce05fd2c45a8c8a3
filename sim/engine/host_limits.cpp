// SPDX-License-Identifier: Apache-2.0
#include "engine/host_limits.hpp"

#include <algorithm>
#include <limits>

namespace fabricast::engine {

namespace {

using models::Crossing;
using models::Flow;
using models::Resources;

constexpr double k_unlimited = std::numeric_limits<double>::infinity();

bool is_network(const Resources& resources, int resource) {
  return resources.is_link(resource) && resources.topology().link_kind(LinkId{resource}) == LinkKind::network;
}

/// Packet headers are the packet engine's own business.
bool is_header_limit(const Resources& resources, int resource) {
  return !resources.is_link(resource) && resources.parameter(resource).ends_with(".packet_header");
}

bool is_point_to_point(const Flow& flow) { return flow.legs.size() == 1; }

/// Host resources that hold a flow back before its packets enter the fabric.
std::vector<Crossing> sending_side(const Resources& resources, const Flow& flow) {
  const auto& topology = resources.topology();
  std::vector<Crossing> out;
  for (const auto& crossing : flow.crossings) {
    if (is_network(resources, crossing.resource) || is_header_limit(resources, crossing.resource)) continue;
    if (is_point_to_point(flow) &&
        topology.host_of(resources.device(crossing.resource)) != topology.host_of(flow.legs[0].from))
      continue;
    out.push_back(crossing);
  }
  return out;
}

/// Progressive filling over the resources of the sending sides.
class Filling {
 public:
  Filling(const Resources& resources, const std::vector<Flow>& flows, const std::vector<double>& caps)
      : caps_(caps), rates_(flows.size(), k_unlimited), is_fixed_(flows.size(), false), uses_(flows.size()) {
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (const auto& crossing : sending_side(resources, flows[f])) {
        auto& one =
            shared_.try_emplace(crossing.resource, Shared{resources.capacity(crossing.resource), 0, {}}).first->second;
        one.weight += crossing.times;
        one.users.push_back(f);
        uses_[f].emplace_back(crossing.resource, crossing.times);
      }
    }
  }

  std::vector<double> fill() {
    while (true) {
      const Shared* tightest = nullptr;
      double least = k_unlimited;
      for (const auto& [resource, one] : shared_) {
        if (one.weight == 0 || one.left / one.weight >= least) continue;
        least = one.left / one.weight;
        tightest = &one;
      }
      if (fix_capped(least)) continue;
      if (tightest == nullptr) return rates_;
      const auto users = tightest->users;
      for (const auto f : users) {
        if (!is_fixed_[f]) fix(f, least);
      }
    }
  }

 private:
  struct Shared {
    double left = 0;
    int weight = 0;  ///< of flows that still grow
    std::vector<std::size_t> users;
  };

  /// Flows whose own cap is below every share that is left.
  bool fix_capped(double least) {
    bool any = false;
    for (std::size_t f = 0; f < rates_.size(); ++f) {
      if (is_fixed_[f] || caps_[f] > least || caps_[f] == k_unlimited) continue;
      fix(f, caps_[f]);
      any = true;
    }
    return any;
  }

  void fix(std::size_t f, double rate) {
    is_fixed_[f] = true;
    rates_[f] = rate;
    for (const auto& [resource, times] : uses_[f]) {
      auto& one = shared_.at(resource);
      one.left = std::max(0.0, one.left - rate * times);
      one.weight -= times;
    }
  }

  const std::vector<double>& caps_;
  std::vector<double> rates_;
  std::vector<bool> is_fixed_;
  std::vector<std::vector<std::pair<int, int>>> uses_;  ///< [flow] -> resource, times
  std::map<int, Shared> shared_;
};

}  // namespace

HostLimits host_limits(const Resources& resources, const std::vector<Flow>& own, const std::vector<Flow>& others) {
  auto flows = own;
  flows.insert(flows.end(), others.begin(), others.end());
  HostLimits limits;
  limits.fabric_rates.assign(flows.size(), k_unlimited);
  std::vector<double> caps;
  std::vector<double> own_caps;
  for (std::size_t f = 0; f < flows.size(); ++f) {
    auto& rate = limits.fabric_rates[f];
    for (const auto& crossing : flows[f].crossings) {
      if (is_network(resources, crossing.resource) || is_header_limit(resources, crossing.resource))
        rate = std::min(rate, resources.capacity(crossing.resource) / crossing.times);
    }
    // Nobody sends faster than the fabric lets him alone: what he cannot use is left to others.
    own_caps.push_back(flows[f].rate_cap);
    caps.push_back(std::min(flows[f].rate_cap, rate));
  }
  limits.send_rates = Filling(resources, flows, caps).fill();
  limits.host_rates = Filling(resources, flows, own_caps).fill();
  for (auto* rates : {&limits.send_rates, &limits.host_rates, &limits.fabric_rates}) rates->resize(own.size());
  return limits;
}

double receive_rate(const Resources& resources, const Flow& flow) {
  double rate = k_unlimited;
  if (!is_point_to_point(flow)) return rate;
  const auto& topology = resources.topology();
  for (const auto& crossing : flow.crossings) {
    if (is_network(resources, crossing.resource) || is_header_limit(resources, crossing.resource)) continue;
    if (topology.host_of(resources.device(crossing.resource)) != topology.host_of(flow.legs[0].to)) continue;
    rate = std::min(rate, resources.capacity(crossing.resource) / crossing.times);
  }
  return rate;
}

}  // namespace fabricast::engine
