// SPDX-License-Identifier: Apache-2.0
// Which algorithm a library picks by itself, by release. Sources: Open MPI coll/tuned (coll_tuned_decision_fixed.c of
// 4.0 and of 4.1 on) and coll/han; decisions_mpich.hpp has those of MPICH's family.
#pragma once

#include <optional>
#include <string>

#include "mpi/schedule.hpp"

namespace fabricast::models::mpi {

enum class Library : std::uint8_t {
  open_mpi_4_0,
  open_mpi_4_1,
  open_mpi_5_0,
  mpich_3,  ///< before 3.4, and MVAPICH2
  mpich_4,  ///< from 3.4 on
  cray_mpich,
  intel_mpi,
  ucc,   ///< Open MPI that leaves collectives to UCC
  hcoll  ///< the same to hcoll
};

/// Of a name (open-mpi-ucx, cray-mpich ...) and a release, major.minor; no release: Open MPI 4.1, whose rules 5.0 keeps
/// below HAN, or MPICH 4.
Library library_of(const std::string& name, const std::string& release);
/// The same where `software.mpi_collectives` may name UCC or hcoll.
Library library_of(const std::string& name, const Software& software);

/// `asked` (benchmark, ranks, size, root, hosts) with algorithm and segments filled in: what the library picks, or the
/// `forced` one without segments.
Collective choose(Library library, Collective asked, std::optional<CollectiveAlgorithm> forced = {});

}  // namespace fabricast::models::mpi
