// SPDX-License-Identifier: Apache-2.0
// Which releases let vGPUs of unlike sizes or series share a card. Releases are cells of the compatibility matrix.
#pragma once

#include "fabricast/parameters.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast {

/// The cell that keeps vGPUs of unlike framebuffers from one card of this host; null where they may share it.
const Parameter* unlike_sizes_bar(const Virtualization& host, double compute_capability,
                                  const ParameterSet& parameters);
/// The same of one framebuffer and unlike series (C beside Q).
const Parameter* unlike_series_bar(const Virtualization& host, const ParameterSet& parameters);

}  // namespace fabricast
