// SPDX-License-Identifier: Apache-2.0
// Which algorithms MPICH and what was made of it pick. Sources: MPICH's selection defaults (3.x: thresholds in the
// sources; from 3.4 on maint/tuning/coll/mpir and ch4, generic.json), the environment that Cray MPICH 8.1.17 prints,
// tables of Intel MPI 4.1.3 as gathered on one cluster (SimGrid's selector).
#pragma once

#include "mpi/decisions.hpp"

namespace fabricast::models::mpi {

bool is_of_mpich(Library library);

/// Hosts count, some have several ranks: whether the collective treats them apart, in two levels.
bool splits_hosts(Library library, const Collective& one);

/// Enough elements, and such a number of ranks, for the algorithm that is forced; else MPICH takes what it would have
/// picked by itself (MPIR_CVAR_COLLECTIVE_FALLBACK, silent).
bool can_run(const Collective& forced);

/// Fills in the algorithm that the ranks pick among them.
void choose_of_mpich(Library library, Collective& out);

}  // namespace fabricast::models::mpi
