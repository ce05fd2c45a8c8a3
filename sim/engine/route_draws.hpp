// SPDX-License-Identifier: Apache-2.0
// Ethernet picks among routes of equal cost by a hash that no vendor publishes: any draw is as likely as the one that
// the seed gives. The same operations are planned over other draws, and what their links allow says how far times
// spread; nothing more is simulated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::engine {

class RouteDraws {
 public:
  /// Plans `workloads` over other draws where `context` has any and they are cheap to plan.
  RouteDraws(const models::PlanContext& context, const std::vector<Workload>& workloads);

  /// bound_of() the operation of workload `w` over each other draw; empty where routes are not drawn.
  [[nodiscard]] std::vector<Duration> bounds(std::size_t w, Bytes size) const;
  /// Where routes are drawn: what the result assumes. `spread`: times differ by draw.
  [[nodiscard]] std::string assumption(std::uint64_t seed, bool is_spread) const;

 private:
  struct Draw {
    std::unique_ptr<models::Resources> resources;
    std::vector<std::unique_ptr<models::Planner>> planners;
  };
  bool is_drawn_ = false;
  std::vector<Draw> draws_;
};

}  // namespace fabricast::engine
