// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fabricast/parameters.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::models {

/// Payload in what packets of an adapter of this type take on the fabric: MTU / (MTU + header); 1 when its type does
/// not say.
double payload_share(const Topology& topology, const ParameterSet& parameters, const std::string& type);

}  // namespace fabricast::models
