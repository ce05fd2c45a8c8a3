// SPDX-License-Identifier: Apache-2.0
// Keys below `software.nccl` of a scenario.
#pragma once

#include "config/schema.hpp"

namespace fabricast::config {

SchemaPtr nccl_settings();

}  // namespace fabricast::config
