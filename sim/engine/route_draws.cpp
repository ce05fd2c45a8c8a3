// SPDX-License-Identifier: Apache-2.0
#include "engine/route_draws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.hpp"
#include "engine/bounds.hpp"
#include "fabricast/models/payload.hpp"

namespace fabricast::engine {

namespace {

using models::Crossing;
using models::Flow;
using models::OperationPlan;

/// More adapters take long to draw again and again.
constexpr std::size_t k_most_adapters = 2048;
/// All-to-all lists a transfer for every pair, 24 B each.
constexpr std::int64_t k_most_pairs = 8 << 20;

bool has_drawn_routes(const Topology& topology) {
  const auto& fabric = topology.spec().fabric;
  return !topology.is_infiniband() && !is_adaptive(fabric) && topology.devices(DeviceKind::network_switch).size() > 1;
}

bool is_switch(const Topology& topology, DeviceId id) { return topology.kind(id) == DeviceKind::network_switch; }

/// True when all links between switches, and all switches, are alike: equal routes then take equally long.
bool are_ways_even(const Topology& topology) {
  std::set<std::pair<double, std::int64_t>> links;
  for (int i = topology.first_network_link(); i < topology.num_links(); ++i) {
    const auto link = topology.link(LinkId{i});
    if (is_switch(topology, link.from) && is_switch(topology, link.to))
      links.emplace(link.bandwidth.bytes_per_s, link.latency.ps);
  }
  std::set<std::int64_t> latencies;
  for (const auto one : topology.devices(DeviceKind::network_switch))
    latencies.insert(topology.device(one).forwarding_latency.ps);
  return links.size() <= 1 && latencies.size() <= 1;
}

/// The routes of a plan's flows, drawn again.
class Rerouter {
 public:
  Rerouter(const Topology& topology, OperationPlan plan)
      : topology_(topology),
        first_(topology.first_network_link()),
        times_(static_cast<std::size_t>(topology.num_links() - first_)),
        plan_(std::move(plan)) {}

  /// True when the links that every flow crosses are those that its transfers take.
  [[nodiscard]] bool is_listed() {
    if (plan_.watched_stream >= 0) return false;
    bool is_equal = true;
    for_each_flow([&](Flow& flow) {
      auto own = flow.crossings;
      std::erase_if(own, [&](const Crossing& one) { return !is_network(one); });
      is_equal = is_equal && own == routed(flow, 0);
      std::erase_if(flow.crossings, [&](const Crossing& one) { return is_network(one); });
    });
    return is_equal;
  }

  /// Of a plan that is listed, its flows numbered from `shift` on.
  [[nodiscard]] Duration bound(const models::Resources& resources, std::uint64_t shift) {
    for_each_flow([&](Flow& flow) {
      const auto links = routed(flow, shift);
      flow.crossings.insert(flow.crossings.end(), links.begin(), links.end());
    });
    const auto out = bound_of(resources, plan_);
    for_each_flow(
        [&](Flow& flow) { std::erase_if(flow.crossings, [&](const Crossing& one) { return is_network(one); }); });
    return out;
  }

 private:
  /// Links of the fabric come last of all links; limits are numbered after them.
  [[nodiscard]] bool is_network(const Crossing& one) const {
    return one.resource >= first_ && one.resource < topology_.num_links();
  }

  template <class Visit>
  void for_each_flow(const Visit& visit) {
    for (auto& node : plan_.program.nodes)
      for (auto& flow : node.flows) visit(flow);
  }

  [[nodiscard]] std::vector<Crossing> routed(const Flow& flow, std::uint64_t shift) {
    std::vector<Crossing> out;
    for (const auto& leg : flow.legs) {
      for (const auto link : topology_.links_between_hcas(leg.from, leg.to, leg.flow + shift)) {
        auto& times = times_[static_cast<std::size_t>(link.value - first_)];
        if (times == 0) out.push_back({link.value, 0});
        times += leg.times;
      }
    }
    std::ranges::sort(out, {}, &Crossing::resource);
    for (auto& one : out) one.times = std::exchange(times_[static_cast<std::size_t>(one.resource - first_)], 0);
    return out;
  }

  const Topology& topology_;
  int first_;
  std::vector<int> times_;  ///< [network link] of the flow that is being routed, else 0
  OperationPlan plan_;
};

}  // namespace

RouteDraws::RouteDraws(const models::PlanContext& context, const std::vector<Workload>& workloads)
    : context_(context),
      workloads_(workloads),
      is_drawn_(has_drawn_routes(context.topology)),
      is_small_(context.topology.devices(DeviceKind::hca).size() <= k_most_adapters),
      has_even_ways_(is_drawn_ && is_small_ && are_ways_even(context.topology)) {}

std::optional<RouteDraws::Draw> RouteDraws::planned(std::uint64_t seed, bool with_legs) const {
  Draw draw;
  draw.resources = std::make_unique<models::Resources>(context_.topology);
  models::set_payload_shares(*draw.resources, context_.parameters);
  const models::PlanContext own{context_.topology,
                                context_.software,
                                context_.parameters,
                                *draw.resources,
                                seed,
                                context_.runs_alone,
                                context_.full_expansion,
                                context_.neighbours,
                                with_legs,
                                context_.workloads,
                                context_.pattern_seed.value_or(context_.seed)};
  for (const auto& workload : workloads_) {
    auto planner = models::make_planner(own, workload);
    if (!planner) return std::nullopt;
    draw.planners.push_back(std::move(*planner));
  }
  return draw;
}

/// Training plans fewer replicas where no transfers are listed.
bool RouteDraws::may_list(std::size_t w) const {
  const auto benchmark = workloads_[w].benchmark;
  if (!has_even_ways_ || family_of(benchmark) == BenchmarkFamily::training) return false;
  const std::int64_t ranks = listing_->planners[w]->num_ranks();
  return benchmark != Benchmark::alltoall_perf || ranks * ranks <= k_most_pairs;
}

std::vector<Duration> RouteDraws::bounds(std::size_t w, Bytes size) {
  if (!is_drawn_ || !is_small_) return {};
  std::vector<Duration> out;
  if (!listing_) listing_ = planned(context_.seed, true);
  FABRICAST_ASSERT(listing_.has_value(), "a workload that was planned is refused");
  if (may_list(w)) {
    Rerouter routes(context_.topology, listing_->planners[w]->plan(size));
    if (routes.is_listed()) {
      for (std::uint64_t d = 1; d <= k_num_draws; ++d)
        out.push_back(routes.bound(*listing_->resources, d * k_seed_step));
      return out;
    }
  }
  for (std::uint64_t d = others_.size() + 1; d <= k_num_draws; ++d) {
    auto draw = planned(context_.seed + d * k_seed_step, context_.with_legs);
    if (!draw) break;
    others_.push_back(std::move(*draw));
  }
  for (const auto& draw : others_) out.push_back(bound_of(*draw.resources, draw.planners[w]->plan(size)));
  return out;
}

std::string RouteDraws::assumption(std::uint64_t seed, bool is_spread) const {
  if (!is_drawn_ || (is_small_ && !is_spread)) return "";
  return fmt::format("routes of equal cost are drawn by a hash that switches do not tell (--seed {}): {}", seed,
                     is_small_ ? fmt::format("the band holds what {} other draws would make of the time", k_num_draws)
                               : "other draws give other times, which no band holds in a fabric of this size");
}

}  // namespace fabricast::engine
