// SPDX-License-Identifier: Apache-2.0
// How much of each link a forecast uses: the bytes that its plans send over the link, over the time they take.
#pragma once

#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/result.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"

namespace fabricast {

struct LinkUse {
  LinkId link;             ///< one direction
  double bytes_per_s = 0;  ///< mean over the operation or step
  double share = 0;        ///< of what the link carries of payload
};

/// Links that carry anything, most used first, in the largest finished row of every workload; workloads that run
/// beside each other are added up. `prediction` is what simulate() made of the same.
std::vector<LinkUse> link_uses(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters,
                               const Prediction& prediction, std::uint64_t seed = 1);

}  // namespace fabricast
