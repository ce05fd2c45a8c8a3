// SPDX-License-Identifier: Apache-2.0
// Which algorithm UCC's transport over UCX picks where Open MPI leaves collectives to it (OMPI_MCA_coll_ucc_enable, as
// HPC-X sets it). Sources: openucx/ucc src/components/tl/ucp, *_DEFAULT_ALG_SELECT_STR of allreduce, allgather, bcast
// and alltoall; tl_ucp.c, *_KN_RADIX.
#pragma once

#include "mpi/decisions.hpp"

namespace fabricast::models::mpi {

/// `out.algorithm`, by benchmark, ranks and size.
void choose_of_ucc(Collective& out);

}  // namespace fabricast::models::mpi
