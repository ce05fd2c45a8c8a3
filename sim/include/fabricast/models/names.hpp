// SPDX-License-Identifier: Apache-2.0
// What can be named in scenarios: MPI profiles, and the algorithms and protocols of each benchmark. Names of terms that
// others look for.
#pragma once

#include <string>
#include <vector>

#include "fabricast/scenario.hpp"

namespace fabricast::models {

/// What a rank's core copies beside its messages in an MPI collective.
inline constexpr const char* k_own_part = "own part copied by the core";
inline constexpr const char* k_temporaries = "copies to and from temporary buffers";

const std::vector<std::string>& mpi_profiles();
std::vector<std::string> algorithms_of(Benchmark benchmark);
std::vector<std::string> protocols_of(Benchmark benchmark);

}  // namespace fabricast::models
