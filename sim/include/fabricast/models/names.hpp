// SPDX-License-Identifier: Apache-2.0
// What can be named in scenarios: MPI profiles, and the algorithms and protocols of each benchmark.
#pragma once

#include <string>
#include <vector>

#include "fabricast/scenario.hpp"

namespace fabricast::models {

const std::vector<std::string>& mpi_profiles();
std::vector<std::string> algorithms_of(Benchmark benchmark);
std::vector<std::string> protocols_of(Benchmark benchmark);

}  // namespace fabricast::models
