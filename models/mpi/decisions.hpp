// SPDX-License-Identifier: Apache-2.0
// Which algorithm a library picks by itself, by release. Sources: Open MPI coll/tuned (coll_tuned_decision_fixed.c of
// 4.0 and of 4.1 on) and coll/han, MPICH's selection defaults (maint/tuning/coll), Cray MPICH's printed environment.
#pragma once

#include <optional>
#include <string>

#include "mpi/schedule.hpp"

namespace fabricast::models::mpi {

enum class Library : std::uint8_t { open_mpi_4_0, open_mpi_4_1, open_mpi_5_0, mpich };

/// Of a profile (open-mpi-ucx, cray-mpich ...) and a release, major.minor; no release: Open MPI 4.1, whose rules 5.0
/// keeps below HAN.
Library library_of(const std::string& profile, const std::string& release);

/// `asked` (benchmark, ranks, size, root, hosts) with algorithm and segments filled in: what the library picks, or the
/// `forced` one without segments.
Collective choose(Library library, Collective asked, std::optional<CollectiveAlgorithm> forced = {});

}  // namespace fabricast::models::mpi
