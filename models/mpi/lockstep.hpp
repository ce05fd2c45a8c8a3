// SPDX-License-Identifier: Apache-2.0
// Rounds of very many messages (a linear all-to-all of 128 ranks has 16,256) as one flow, and rings as their mean edge.
#pragma once

#include <vector>

#include "fabricast/models/program.hpp"

namespace fabricast::models::mpi {

/// Above so many messages a round is one flow, or one for every number of bytes that a message carries (inside hosts
/// and between them). Every rank of a linear exchange loads its ports, and every switch its uplinks, until the last
/// message is through, so the round ends when what is loaded most has passed its bytes: that is the flow whose
/// crossings are those of all messages together. Fluid flows end one by one and each end costs a new solution of all
/// rates, so n^2 messages cost n^4; tests/unit/simulate compares both.
inline constexpr std::size_t k_most_messages = 1024;

/// All flows (at least one) as one for each number of bytes, in the order in which the numbers first come: it starts
/// with its first message and is no faster than the ranks post, which takes from the least latency to the greatest.
std::vector<Flow> in_lockstep(std::vector<Flow> flows);

/// Rounds of a ring are no barriers: a block passes every edge in turn, so its latencies are those of the mean edge
/// (tests/unit/simulate compares with the ring expanded step by step).
void share_latencies(Node& node);

}  // namespace fabricast::models::mpi
