// SPDX-License-Identifier: Apache-2.0
// The `lossless:` block of a fabric, already checked, to values.
#pragma once

#include "config/tree.hpp"
#include "fabricast/lossless_spec.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::config {

LosslessSpec read_lossless(const Node& node, Diagnostics& faults);

/// Keys of the fabric's `lossless:` block that would change nothing with the others given; errors.
Diagnostics lossless_faults(const FabricSpec& fabric, bool is_infiniband, const ParameterSet& parameters);

}  // namespace fabricast::config
