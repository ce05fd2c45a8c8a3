// SPDX-License-Identifier: Apache-2.0
#include "fabricast/models/names.hpp"

#include "mpi/profile.hpp"
#include "mpi/schedule.hpp"
#include "nccl/workload_rules.hpp"

namespace fabricast::models {

const std::vector<std::string>& mpi_profiles() { return mpi::profile_names(); }

std::vector<std::string> algorithms_of(Benchmark benchmark) {
  if (family_of(benchmark) == BenchmarkFamily::nccl_tests) return nccl::algorithm_names(benchmark);
  std::vector<std::string> names;
  for (const auto algorithm : mpi::algorithms_for(benchmark)) names.emplace_back(to_string(algorithm));
  return names;
}

std::vector<std::string> protocols_of(Benchmark benchmark) {
  if (family_of(benchmark) == BenchmarkFamily::nccl_tests) return {"ll", "ll128", "simple"};
  return {};
}

}  // namespace fabricast::models
