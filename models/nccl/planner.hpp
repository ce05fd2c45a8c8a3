// SPDX-License-Identifier: Apache-2.0
// Forecast of one NCCL operation. For all-reduce on a ring of n ranks with C channels, chunk c and payload share e:
//
//   time = base + L x sum over the 2(n-1) hops of (hop time + link latency) + store and forward + (2(n-1) + k) S / (n C
//   e) / r c = min(largest chunk of the protocol, S / (n C)),  L = ceil(S / (n C c))
//
// r is the rate of one channel: the fair share of every link the channels cross, at most what one thread block copies.
// k is the share of a step spent on the last local copy. Other collectives differ in hops and bytes per link.
// At least the host's launch interval. docs/MODELS.md, "NCCL".
#pragma once

#include <memory>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::nccl {

Result<std::unique_ptr<Planner>> make_collective_planner(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models::nccl
