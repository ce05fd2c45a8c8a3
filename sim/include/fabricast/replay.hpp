// SPDX-License-Identifier: Apache-2.0
// How long a trace takes on a cluster, and where the time goes.
#pragma once

#include <string>
#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"
#include "fabricast/trace.hpp"

namespace fabricast {

struct ReplayOptions {
  Software software;
  int ranks_per_host = 0;  ///< of processes; 0 = as MPI places them
};

struct RankReplay {
  std::string device;
  Duration end;            ///< of its last operation
  Duration compute;        ///< sum over its operations, with what collectives beside them add
  Duration compute_alone;  ///< the same alone
  Duration exchange;       ///< any of its collectives or messages was under way
  Duration exposed;        ///< of `exchange`, while it computed nothing
  std::vector<Duration> op_ends;
};

struct ReplayReport {
  std::string format;
  Duration time;
  std::vector<RankReplay> ranks;
  std::size_t num_ops = 0;
};

Result<ReplayReport> replay(const Topology& topology, const ParameterSet& parameters, const Trace& trace,
                            const ReplayOptions& options = {});

}  // namespace fabricast
