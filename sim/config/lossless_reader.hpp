// SPDX-License-Identifier: Apache-2.0
// The `lossless:` block of a fabric, already checked, to values.
#pragma once

#include "config/tree.hpp"
#include "fabricast/lossless_spec.hpp"

namespace fabricast::config {

LosslessSpec read_lossless(const Node& node, Diagnostics& faults);

}  // namespace fabricast::config
