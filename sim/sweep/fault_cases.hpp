// SPDX-License-Identifier: Apache-2.0
// The faults of a topology, one by one or drawn at random.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fabricast/fault_sweep.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::sweep {

struct Fault {
  std::string name;
  int count = 1;              ///< equal ones
  std::vector<LinkId> links;  ///< dead cables, one direction each
  std::vector<int> hosts;     ///< that spares would replace
  std::vector<int> broken;    ///< hosts that are out of work themselves
  double slower = 0;          ///< of a GPU
};

/// Where the job runs.
struct JobPlace {
  std::set<int> hosts;
  int ranks = 0;  ///< on these hosts; where they are GPUs, as many GPUs
};

/// All single faults, or `samples` draws of `simultaneous` of them. Hosts of one group and GPUs are equal, apart from
/// those beside the job.
std::vector<Fault> faults_of(const Topology& topology, const JobPlace& job, const FaultPlan& plan);

}  // namespace fabricast::sweep
