// SPDX-License-Identifier: Apache-2.0
// Rounds of very many messages (a linear all-to-all of 128 ranks has 16,256) as one flow.
#pragma once

#include <string>
#include <vector>

#include "fabricast/models/program.hpp"

namespace fabricast::models::mpi {

/// Above so many messages of equal size a round is one flow. Every rank of a linear exchange loads its ports, and every
/// switch its uplinks, until the last message is through, so the round ends when what is loaded most has passed its
/// bytes: that is the flow whose crossings are those of all messages together. Fluid flows end one by one and each end
/// costs a new solution of all rates, so n^2 messages cost n^4; tests/unit/simulate compares both.
inline constexpr std::size_t k_most_messages = 1024;

/// Whether the flows of a round may be one: all carry the same number of bytes.
bool are_alike(const std::vector<Flow>& flows);

/// All flows (at least one, alike) as one: it starts with the first message and is no faster than the ranks post,
/// which takes from the least latency to the greatest; `posting` is the parameter that says what posting costs.
Flow in_lockstep(std::vector<Flow> flows, const std::string& posting);

}  // namespace fabricast::models::mpi
