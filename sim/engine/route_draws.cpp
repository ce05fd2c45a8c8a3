// SPDX-License-Identifier: Apache-2.0
#include "engine/route_draws.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/bounds.hpp"
#include "fabricast/models/payload.hpp"

namespace fabricast::engine {

namespace {

/// With the forecast's own twenty: two lie below the band's low end, two above its high end.
constexpr std::uint64_t k_num_draws = 19;
/// Between seeds: flows are numbered from the seed on.
constexpr std::uint64_t k_seed_step = 0x9e3779b97f4a7c15ULL;
/// More adapters take long to plan again and again.
constexpr std::size_t k_most_adapters = 2048;

bool has_drawn_routes(const Topology& topology) {
  const auto& fabric = topology.spec().fabric;
  return !topology.is_infiniband() && !is_adaptive(fabric) && topology.devices(DeviceKind::network_switch).size() > 1;
}

}  // namespace

RouteDraws::RouteDraws(const models::PlanContext& context, const std::vector<Workload>& workloads) {
  const auto& topology = context.topology;
  is_drawn_ = has_drawn_routes(topology);
  if (!is_drawn_ || topology.devices(DeviceKind::hca).size() > k_most_adapters) return;
  for (std::uint64_t d = 1; d <= k_num_draws; ++d) {
    Draw draw;
    draw.resources = std::make_unique<models::Resources>(topology);
    models::set_payload_shares(*draw.resources, context.parameters);
    const models::PlanContext own{topology,
                                  context.software,
                                  context.parameters,
                                  *draw.resources,
                                  context.seed + d * k_seed_step,
                                  context.runs_alone,
                                  context.full_expansion,
                                  context.neighbours,
                                  context.with_legs,
                                  context.workloads,
                                  context.pattern_seed.value_or(context.seed)};
    for (const auto& workload : workloads) {
      auto planner = models::make_planner(own, workload);
      if (!planner) return;
      draw.planners.push_back(std::move(*planner));
    }
    draws_.push_back(std::move(draw));
  }
}

std::vector<Duration> RouteDraws::bounds(std::size_t w, Bytes size) const {
  std::vector<Duration> out;
  for (const auto& draw : draws_) out.push_back(bound_of(*draw.resources, draw.planners[w]->plan(size)));
  return out;
}

std::string RouteDraws::assumption(std::uint64_t seed, bool is_spread) const {
  if (!is_drawn_ || (!draws_.empty() && !is_spread)) return "";
  return fmt::format("routes of equal cost are drawn by a hash that switches do not tell (--seed {}): {}", seed,
                     draws_.empty()
                         ? "other draws give other times, which no band holds in a fabric of this size"
                         : fmt::format("the band holds what {} other draws would make of the time", draws_.size()));
}

}  // namespace fabricast::engine
