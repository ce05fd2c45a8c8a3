// SPDX-License-Identifier: Apache-2.0
// Ethernet picks among routes of equal cost by a hash that no vendor publishes: any draw is as likely as the one that
// the seed gives. The routes of the same operations are drawn anew, and what their links allow says how far times
// spread; nothing more is simulated. Where a plan lists its network transfers they are routed again, else the
// operation is planned again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::engine {

class RouteDraws {
 public:
  /// With the forecast's own twenty: two lie below the band's low end, two above its high end.
  static constexpr std::uint64_t k_num_draws = 19;
  /// Between seeds: flows are numbered from the seed on.
  static constexpr std::uint64_t k_seed_step = 0x9e3779b97f4a7c15ULL;

  /// Draws where `context` has drawn routes and not too many of them. Keeps both by reference.
  RouteDraws(const models::PlanContext& context, const std::vector<Workload>& workloads);

  /// bound_of() the operation of workload `w` over each other draw; empty where routes are not drawn.
  [[nodiscard]] std::vector<Duration> bounds(std::size_t w, Bytes size);
  /// Where routes are drawn: what the result assumes. `spread`: times differ by draw.
  [[nodiscard]] std::string assumption(std::uint64_t seed, bool is_spread) const;

 private:
  struct Draw {
    std::unique_ptr<models::Resources> resources;
    std::vector<std::unique_ptr<models::Planner>> planners;  ///< by workload
  };
  /// All workloads planned with the routes that `seed` draws; nothing where one of them is refused.
  [[nodiscard]] std::optional<Draw> planned(std::uint64_t seed, bool with_legs) const;
  /// What plans list their transfers well enough to be routed again.
  [[nodiscard]] bool may_list(std::size_t w) const;

  const models::PlanContext& context_;
  const std::vector<Workload>& workloads_;
  bool is_drawn_ = false;
  bool is_small_ = false;        ///< few enough adapters to draw again and again
  bool has_even_ways_ = false;   ///< routes between the same ends differ in nothing but whom they meet
  std::optional<Draw> listing_;  ///< the forecast's own draw, with transfers listed
  std::vector<Draw> others_;     ///< planned anew, once a plan lists too little
};

}  // namespace fabricast::engine
