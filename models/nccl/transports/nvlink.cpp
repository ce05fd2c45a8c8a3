// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

void limit_nvlink_stores(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  const auto& reached = op.parameter("nccl.nvlink_store_share"_stem, steps.algorithm.store_name());
  const auto* of_links = steps.algorithm.link_share();
  const double share = reached.value * (of_links != nullptr ? of_links->value : 1);
  for (const auto& crossing : flow.crossings) {
    const auto& resources = op.context.resources;
    if (!is_link_of(resources, crossing, LinkKind::nvlink)) continue;
    const double limit = share * resources.capacity(crossing.resource) / crossing.times;
    if (limit >= flow.rate_cap) continue;
    flow.rate_cap = limit;
    flow.cap_name = fmt::format("stores over {}", resources.name(crossing.resource));
    flow.cap_parameter = reached.name;
  }
}

}  // namespace fabricast::models::nccl
