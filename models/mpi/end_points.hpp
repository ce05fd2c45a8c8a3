// SPDX-License-Identifier: Apache-2.0
// Placement: which memory, GPU and HCAs a rank uses. Ranks fill hosts in order; on a host, rank i uses GPU i (device
// buffers) or the memory of socket i modulo sockets (host buffers), and the HCAs nearest to it. Ranks at equal distance
// from several HCAs take turns (`rotates_hcas`), or all take the first, as the library does; a library that does not
// compare HCAs with the GPU (`compares_gpus`) takes those of the rank's socket.
#pragma once

#include <vector>

#include "mpi/transfer.hpp"

namespace fabricast::models::mpi {

/// The two ends of the `pair`-th pair of a point-to-point test: different hosts when there are two, else the same host.
struct Pair {
  EndPoint first;
  EndPoint second;
};
Result<std::vector<Pair>> make_pairs(const PlanContext& context, const Workload& workload, const Profile& profile);

/// End points of a collective, in rank order.
Result<std::vector<EndPoint>> make_ranks(const PlanContext& context, const Workload& workload, const Profile& profile);

/// End points of the processes that drive `gpus`, bound to the GPU's socket: they send with the HCAs near its memory.
Result<std::vector<EndPoint>> make_processes(const PlanContext& context, const Workload& workload,
                                             const std::vector<DeviceId>& gpus, const Profile& profile);

/// Short name of an end point for tables.
std::string name_of(const Topology& topology, const EndPoint& end);

}  // namespace fabricast::models::mpi
