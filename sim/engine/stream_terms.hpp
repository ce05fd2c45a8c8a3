// SPDX-License-Identifier: Apache-2.0
// How one stream of a program spends its time: its own work, what others on its device add to that, and what it waits
// for. The terms add up to the program's time.
//
//   time = sum over the stream's nodes of (wait before it + fixed + work + slowed) + wait for the program's end
#pragma once

#include <string>
#include <vector>

#include "engine/job.hpp"
#include "fabricast/parameters.hpp"

namespace fabricast::engine {

/// `plan.watched_stream` must exist.
std::vector<Term> stream_terms(const models::OperationPlan& plan, const OperationTiming& timing,
                               const ParameterSet& parameters);

/// What the streams of the program did, by start; of more than `k_longest_timeline` nodes the longest.
inline constexpr std::size_t k_longest_timeline = 20'000;
std::vector<Span> timeline(const models::OperationPlan& plan, const OperationTiming& timing);

}  // namespace fabricast::engine
