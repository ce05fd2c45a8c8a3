// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "fabricast/virtualization.hpp"

namespace fabricast {

/// A closed gate with its reason; inferred: no source says so, what was seen does.
inline Gate closed(std::string reason, bool is_inferred = false) { return {false, std::move(reason), is_inferred}; }

}  // namespace fabricast
