// SPDX-License-Identifier: Apache-2.0
// What each node of an executed program waited for.
#pragma once

#include <vector>

#include "engine/job.hpp"

namespace fabricast::engine {

/// [node] -> of the nodes it is `after` and the one before it on its stream, the one that ended last (the first of
/// equals); -1 = none. On `ignored_stream` order is no reason to wait.
std::vector<int> waited_for(const models::Program& program, const OperationTiming& timing, int ignored_stream = -1);

/// The node that ends last, the first of equals; -1 = the program is empty.
int last_to_end(const OperationTiming& timing);

}  // namespace fabricast::engine
