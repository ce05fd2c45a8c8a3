// SPDX-License-Identifier: Apache-2.0
// What a cache keeps of a working set that is swept again and again. docs/MODELS.md, "MPI collectives".
#pragma once

namespace fabricast::models::mpi {

/// Share of the accesses that miss a cache of `cache` bytes when `working_set` bytes are swept in turn and lines are
/// replaced at random: the hit share h solves h = exp(-(1 - h) working_set / cache). 0 while the set fits.
double share_beyond_cache(double working_set, double cache);

}  // namespace fabricast::models::mpi
