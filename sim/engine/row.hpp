// SPDX-License-Identifier: Apache-2.0
// Timings of an engine to a row whose terms add up to its time.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/job.hpp"
#include "fabricast/models/planner.hpp"
#include "fabricast/result.hpp"

namespace fabricast::engine {

/// What an operation that takes a time alone on its devices waits for others there.
using Waits = std::function<std::vector<Term>(Duration)>;

/// `is_packet` says what the time beyond a lone transfer is called. `drawn`: bounds of the same operation over other
/// draws of its routes (engine/route_draws.hpp), or none. `outside_in` gets the reasons why the row is outside what the
/// logs of a fit showed.
Row make_row(const models::Resources& resources, const models::Planner& planner, const models::OperationPlan& plan,
             const OperationTiming& timing, const Waits& waits, const ParameterSet& parameters,
             const Workload& workload, bool is_packet, const std::vector<Duration>& drawn,
             std::set<std::string>& outside_in);

/// True when a time or a size of the row does not fit: it is no result then.
bool is_past_range(const Row& row);

}  // namespace fabricast::engine
