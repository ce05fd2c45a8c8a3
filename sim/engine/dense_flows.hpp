// SPDX-License-Identifier: Apache-2.0
// What SimGrid is asked to share: as few resources as give the same result.
#pragma once

#include <vector>

#include "fabricast/models/plan.hpp"

namespace fabricast::engine {

/// The flows of one run with resources renumbered densely, caps as resources of their own, and, unless `keep_all`,
/// resources that another one dominates left out.
struct DenseFlows {
  std::vector<double> capacities;
  std::vector<std::vector<models::Crossing>> crossings;  ///< per flow
};

DenseFlows make_dense(const models::Resources& resources, const std::vector<const models::Flow*>& flows, bool keep_all);

}  // namespace fabricast::engine
