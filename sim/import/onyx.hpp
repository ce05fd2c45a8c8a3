// SPDX-License-Identifier: Apache-2.0
// The lossless settings of an Onyx switch's running configuration, a part of a topology by itself.
#pragma once

#include "import/source.hpp"

namespace fabricast::import {

bool looks_like_onyx(std::string_view text);
/// In `yaml`: the `lossless:` part of a fabric.
Result<ImportedCluster> import_onyx(const ClusterSource& given);
Result<void> read_onyx(const Source& source, Inventory& out);

}  // namespace fabricast::import
