// SPDX-License-Identifier: Apache-2.0
#include "schedules/levels.hpp"

namespace fabricast::models::schedules {

Rounds chain(const Tree& tree) { return to_rounds(complete_tree(tree.n, 1), tree); }

}  // namespace fabricast::models::schedules
