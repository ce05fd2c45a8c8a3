// SPDX-License-Identifier: Apache-2.0
// Which hosts take part: ranks fill hosts in order, a pair takes two hosts where there are two. What hosts beside them
// have changes nothing; nor do slower adapters beside a host's fastest.
#pragma once

#include <vector>

#include "fabricast/models/planner.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::mpi {

/// Where the two ends of a pair are: hosts, and which of their host's ranks they are.
struct PairPlace {
  int first = 0, second = 0;
  int first_index = 0, second_index = 0;
};
/// Rank i and rank i + pairs, as OSU has them: all first ends on one host, all second ones on the next, or all on one
/// that takes so many ranks; several pairs whose `ranks_per_host` are few fill hosts in order. Empty where ranks are
/// left over. A head node without GPUs may come before hosts whose GPUs are needed.
std::vector<PairPlace> places_of_pairs(const Topology& topology, const Workload& workload);

/// Ranks of a collective by host, those without any left out. Host ranks that outnumber GPUs are spread evenly.
struct RankPlaces {
  struct Share {
    int host = 0;
    int ranks = 0;
  };
  std::vector<Share> hosts;
  int wanted = 0;
  int most = 0;  ///< that fit; fewer than `wanted` where they do not
};
RankPlaces places_of_ranks(const Topology& topology, const Workload& workload);

/// Leaves the fastest ones, in their order: UCX and libfabric take those, however near a slower one is.
void keep_fastest(const PlanContext& context, std::vector<DeviceId>& hcas);

/// Hosts whose processes exchange messages, of MPI benchmarks and perftest.
std::vector<int> hosts_taking_part(const Topology& topology, const Workload& workload);

}  // namespace fabricast::models::mpi
