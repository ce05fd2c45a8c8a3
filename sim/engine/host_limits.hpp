// SPDX-License-Identifier: Apache-2.0
// Max-min shares of flows that are active together, by progressive filling [Bertsekas & Gallager 1992, 6.5.2]: what the
// inside of hosts allows before the fabric has its say, and where a flow is held. What a flow reaches alone.
#pragma once

#include <limits>
#include <vector>

#include "fabricast/models/plan.hpp"

namespace fabricast::engine {

/// Longer than a flow alone by no more is rounding, not sharing.
inline constexpr Duration k_rounding{2};
/// The rate of a flow that nothing holds, bytes/s; the time of one that something without capacity holds, s.
inline constexpr double k_unlimited = std::numeric_limits<double>::infinity();

/// The resource or cap that limits a flow alone: index into crossings, or -1 for the cap.
int binding_crossing(const models::Resources& resources, const models::Flow& flow);
/// Seconds of its bytes alone; infinite when something on the way has no capacity.
double seconds_alone(const models::Resources& resources, const models::Flow& flow);
Duration transfer_alone(const models::Resources& resources, const models::Flow& flow);

/// A network link, or what packet headers leave of one: limits that packets meet by themselves.
bool is_network_limit(const models::Resources& resources, int resource);

/// Rate of each flow by what is on its sending side (for flows of one leg) or anywhere in hosts (others), bytes/s, if
/// the fabric had no limits; infinite when nothing limits it. O(crossings x log).
std::vector<double> host_rates(const models::Resources& resources, const std::vector<models::Flow>& flows);

/// What holds each of `flows` while all are active, everything counted: a resource, or -1 for its own cap.
std::vector<int> shared_bottlenecks(const models::Resources& resources, const std::vector<const models::Flow*>& flows);

/// Flow `which` of a round, then those that are half way of its transfer under way too; `ends` since the round began.
std::vector<const models::Flow*> active_beside(const std::vector<models::Flow>& flows,
                                               const std::vector<Duration>& ends, std::size_t which);

}  // namespace fabricast::engine
