// SPDX-License-Identifier: Apache-2.0
// Threads of VMs on the cores of a host: how much longer a thread takes beside vCPUs of others.
#pragma once

#include "fabricast/models/virtualization.hpp"

namespace fabricast::models {

/// vCPUs beside a thread: how many for each core, and the part of the time each has work.
struct CoreNeighbours {
  double per_core = 0;
  double load = 0;                          ///< 0 to 1
  double shares = 1000, own_shares = 1000;  ///< when cores are short
};

/// Time of a burst of work beside them over its time alone: simulated slice by slice. Any number of neighbours.
double shared_core_slowdown(const ParameterSet& parameters, const CoreNeighbours& neighbours);

/// Slowdown (0.02 = 2 %) beside knowledge-worker VMs on a host of `cores` cores.
double knowledge_worker_slowdown_on(const ParameterSet& parameters, NeighbourVictim victim, double workers,
                                    double cores);

}  // namespace fabricast::models
