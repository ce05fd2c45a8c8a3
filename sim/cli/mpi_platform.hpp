// SPDX-License-Identifier: Apache-2.0
// The topology's network as SimGrid's SMPI is to see it: hosts, the cables and switches between those that ranks are
// on.
#pragma once

#include <string>
#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::cli {

struct Platform {
  double rate = 0;         ///< bytes per second that one rank reaches, host to host
  double rate_inside = 0;  ///< between ranks of one host; 0: every rank has a host of its own
};

/// A way through the network, and two hosts it is between.
struct NetworkWay {
  Duration latency;
  int from = 0, to = 1;
};

struct SimgridNetwork {
  std::string xml;
  std::vector<NetworkWay> ways;  ///< with different latencies, at most 8
};

/// Every pair of hosts with ranks has its own way, of the equal ones that which the forecast takes. Beyond 256 hosts
/// with ranks: the way of the first pair for all, and switches that hold nobody up.
SimgridNetwork simgrid_network(const Topology& topology, const ParameterSet& parameters, int num_ranks, int per_host,
                               const Platform& platform);

}  // namespace fabricast::cli
