// SPDX-License-Identifier: Apache-2.0
// Open MPI 5.0's HAN: two levels, in segments. Inside hosts the usual rules pick by the ranks of a host and the
// segment's size; between hosts libnbc does, by its own [coll/han coll_han_allreduce.c, coll_han_bcast.c,
// coll_han_reduce.c; coll/libnbc nbc_ireduce.c, nbc_ibcast.c]. An all-gather goes whole and blocks: the usual rules
// pick between hosts, too [coll_han_allgather.c]; a gather and a scatter as well [coll_han_gather.c,
// coll_han_scatter.c].
#pragma once

#include <functional>
#include <vector>

#include "mpi/schedule.hpp"

namespace fabricast::models::mpi {

inline constexpr Bytes k_han_segment{64 << 10};

/// Collectives that it takes over `hosts` ([rank]), some of which have several ranks; all but all-reduces and barriers
/// only where all have as many.
bool han_takes(Benchmark benchmark, const std::vector<int>& hosts);

/// The parts of an all-reduce, a reduce or a broadcast in two levels (schedule.hpp). `choose`: fills in what the usual
/// rules pick.
std::vector<Collective> parts_of_han(const Collective& whole, const std::function<void(Collective&)>& choose);

/// The parts of an all-gather, a gather or a scatter in two levels: a gather inside hosts, the same between them, a
/// broadcast, or scatter, inside.
std::vector<Collective> parts_of_blocks(const Collective& whole, const std::function<void(Collective&)>& choose);

}  // namespace fabricast::models::mpi
