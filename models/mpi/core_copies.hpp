// SPDX-License-Identifier: Apache-2.0
// What a rank's one core copies in a round of a collective. docs/MODELS.md, "MPI collectives".
#pragma once

#include <vector>

#include "mpi/transfer.hpp"
#include "schedules/rounds.hpp"

namespace fabricast::models::mpi {

/// A core that sends and receives eager messages of several segments makes their copies one after the other.
/// `messages` belong to the steps of `round` and get the rate that is left.
void share_cores(const Transfers& transfers, const schedules::Round& round, std::vector<Message>& messages);

}  // namespace fabricast::models::mpi
