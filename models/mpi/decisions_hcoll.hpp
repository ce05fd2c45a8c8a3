// SPDX-License-Identifier: Apache-2.0
// What hcoll picks where Open MPI leaves collectives to it (coll_hcoll_enable, on by default in HPC-X). Its sources are
// closed; its manual says that it works by levels: ranks of a host meet in shared memory (basesmuma), one of each host
// over UCX (ucx_p2p) [HPC-X manual, HCOLL]. Its open ancestor does so, too [Open MPI 1.8, coll/ml].
#pragma once

#include "fabricast/diagnostic.hpp"
#include "fabricast/models/planner.hpp"
#include "fabricast/scenario.hpp"
#include "mpi/schedule.hpp"

namespace fabricast::models::mpi {

constexpr const char* k_assumed_of_hcoll =
    "hcoll's algorithms are not published; taken: trees inside hosts, doubling or a tree between them, and Open MPI's "
    "for what is no all-reduce, broadcast or barrier";

/// Collectives that go by levels here; others are left to Open MPI's rules.
bool hcoll_takes(Benchmark benchmark);

/// That they do, as results say.
GivenUsed hcoll_setting();

/// `between.algorithm`, of one rank of each host.
void choose_between_hosts_of_hcoll(Collective& between);

/// Why UCC or hcoll cannot run collectives of the library `implementation`; nothing where nobody asks for them.
Diagnostics faults_of_collectives(const Software& software, const Workload& workload,
                                  const std::string& implementation);

}  // namespace fabricast::models::mpi
