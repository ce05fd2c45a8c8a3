// SPDX-License-Identifier: Apache-2.0
#include "engine/host_limits.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_map>

#include "base/assert.hpp"

namespace fabricast::engine {

namespace {

using models::Crossing;
using models::Flow;
using models::Resources;

/// Host resources that hold a flow back before its packets enter the fabric.
std::vector<Crossing> sending_side(const Resources& resources, const Flow& flow) {
  const auto& topology = resources.topology();
  const bool is_point_to_point = flow.legs.size() == 1;
  std::vector<Crossing> out;
  for (const auto& crossing : flow.crossings) {
    if (is_network_limit(resources, crossing.resource)) continue;
    if (is_point_to_point &&
        topology.host_of(resources.device(crossing.resource)) != topology.host_of(flow.legs[0].from))
      continue;
    out.push_back(crossing);
  }
  return out;
}

/// Progressive filling. What a resource could give each of those that still grow never falls while others are fixed, so
/// the next to be full is found in a heap whose entries are brought up to date when they come out.
class Filling {
 public:
  template <typename Crossings>
  Filling(const Resources& resources, const std::vector<const Flow*>& flows, const Crossings& crossings_of)
      : rates_(flows.size(), k_unlimited),
        holders_(flows.size(), -1),
        is_fixed_(flows.size(), false),
        uses_(flows.size()) {
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (const auto& crossing : crossings_of(*flows[f]))
        use(f, place_of(crossing.resource, resources.capacity(crossing.resource)), crossing.times);
      if (flows[f]->rate_cap == k_unlimited) continue;
      shared_.push_back({-1, flows[f]->rate_cap, 0, {}});
      use(f, shared_.size() - 1, 1);
    }
  }

  [[nodiscard]] const std::vector<double>& rates() const { return rates_; }
  [[nodiscard]] const std::vector<int>& holders() const { return holders_; }

  void fill() {
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
    for (std::size_t s = 0; s < shared_.size(); ++s) next.emplace(share_of(s), s);
    while (!next.empty()) {
      const auto [share, s] = next.top();
      next.pop();
      if (shared_[s].weight == 0) continue;
      if (share_of(s) > share) {
        next.emplace(share_of(s), s);
        continue;
      }
      for (const auto f : shared_[s].users) {
        if (!is_fixed_[f]) fix(f, share, shared_[s].resource);
      }
    }
  }

 private:
  using Entry = std::pair<double, std::size_t>;  ///< share, resource
  struct Shared {
    int resource = -1;
    double left = 0;
    int weight = 0;  ///< of flows that still grow
    std::vector<std::size_t> users;
  };

  std::size_t place_of(int resource, double capacity) {
    const auto [it, is_new] = places_.try_emplace(resource, shared_.size());
    if (is_new) shared_.push_back({resource, capacity, 0, {}});
    return it->second;
  }

  void use(std::size_t f, std::size_t place, int times) {
    shared_[place].weight += times;
    shared_[place].users.push_back(f);
    uses_[f].emplace_back(place, times);
  }

  [[nodiscard]] double share_of(std::size_t s) const {
    return shared_[s].weight == 0 ? k_unlimited : shared_[s].left / shared_[s].weight;
  }

  void fix(std::size_t f, double rate, int holder) {
    holders_[f] = holder;
    is_fixed_[f] = true;
    rates_[f] = rate;
    for (const auto& [place, times] : uses_[f]) {
      auto& one = shared_[place];
      one.left = std::max(0.0, one.left - rate * times);
      one.weight -= times;
    }
  }

  std::vector<double> rates_;
  std::vector<int> holders_;
  std::vector<bool> is_fixed_;
  std::vector<std::vector<std::pair<std::size_t, int>>> uses_;  ///< [flow] -> resource, times
  std::vector<Shared> shared_;
  std::unordered_map<int, std::size_t> places_;
};

}  // namespace

int binding_crossing(const Resources& resources, const Flow& flow) {
  int binding = -1;
  double rate = flow.rate_cap;
  for (std::size_t c = 0; c < flow.crossings.size(); ++c) {
    const double share = resources.capacity(flow.crossings[c].resource) / flow.crossings[c].times;
    if (share < rate) {
      rate = share;
      binding = static_cast<int>(c);
    }
  }
  return binding;
}

double seconds_alone(const Resources& resources, const Flow& flow) {
  if (flow.bytes <= 0) return 0;
  const double rate = rate_alone(resources, flow);
  FABRICAST_ASSERT(!std::isinf(rate), "nothing limits a flow of {} bytes", flow.bytes);
  return rate > 0 ? flow.bytes / rate : k_unlimited;
}

Duration transfer_alone(const Resources& resources, const Flow& flow) {
  return from_seconds_up(seconds_alone(resources, flow));
}

bool is_network_limit(const Resources& resources, int resource) {
  if (resources.is_link(resource)) return resources.topology().link_kind(LinkId{resource}) == LinkKind::network;
  return resources.parameter(resource).ends_with(".packet_header");
}

std::vector<double> host_rates(const Resources& resources, const std::vector<Flow>& flows) {
  std::vector<const Flow*> all;
  for (const auto& flow : flows) all.push_back(&flow);
  Filling filling(resources, all, [&](const Flow& flow) { return sending_side(resources, flow); });
  filling.fill();
  return filling.rates();
}

std::vector<int> shared_bottlenecks(const Resources& resources, const std::vector<const Flow*>& flows) {
  Filling filling(resources, flows, [](const Flow& flow) -> const std::vector<Crossing>& { return flow.crossings; });
  filling.fill();
  return filling.holders();
}

std::vector<const Flow*> active_beside(const std::vector<Flow>& flows, const std::vector<Duration>& ends,
                                       std::size_t which) {
  const auto half_way = flows[which].latency.ps + (ends[which] - flows[which].latency).ps / 2;
  std::vector<const Flow*> out{&flows[which]};
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (f != which && flows[f].latency.ps <= half_way && ends[f].ps > half_way) out.push_back(&flows[f]);
  }
  return out;
}

}  // namespace fabricast::engine
