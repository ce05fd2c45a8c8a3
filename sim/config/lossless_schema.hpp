// SPDX-License-Identifier: Apache-2.0
// Key tables of lossless fabrics and of the traffic benchmark.
#pragma once

#include <vector>

#include "config/schema.hpp"

namespace fabricast::config {

SchemaPtr lossless_schema();   ///< `lossless:` of a fabric
SchemaPtr flow_list_schema();  ///< `flows:` of the traffic benchmark
SchemaPtr transport_schema();  ///< `transport:` of a workload

/// Values of a switch ASIC, and of the rate control in an HCA.
std::vector<DeviceField> asic_fields();
std::vector<DeviceField> dcqcn_fields();

}  // namespace fabricast::config
