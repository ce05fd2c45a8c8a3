// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

namespace {

const Parameter& reached_share(const Steps& steps) {
  return steps.op.parameter("nccl.nvlink_store_share"_stem, steps.algorithm.store_name());
}

NvlinkLimit store_limit(const Flow& flow, const Steps& steps) {
  return slowest_nvlink(steps.op.context.resources, flow,
                        reached_share(steps).value * steps.algorithm.reached_of_links());
}

}  // namespace

NvlinkLimit slowest_nvlink(const Resources& resources, const Flow& flow, double share) {
  NvlinkLimit out;
  for (const auto& crossing : flow.crossings) {
    if (!is_link_of(resources, crossing, LinkKind::nvlink)) continue;
    const double rate = share * resources.capacity(crossing.resource) / crossing.times;
    if (rate < out.rate) out = {rate, crossing.resource};
  }
  return out;
}

void add_contention(Flow& flow, NvlinkLimit& limit, double power) {
  const double ratio = std::min(limit.rate, flow.rate_cap) / std::max(limit.rate, flow.rate_cap);
  const double both = std::pow(1 + std::pow(ratio, power), -1 / power);
  flow.rate_cap *= both;
  limit.rate *= both;
}

double rate_of_stores(const Flow& flow, const Steps& steps) { return store_limit(flow, steps).rate; }

void limit_nvlink_stores(Flow& flow, const Steps& steps) {
  auto limit = store_limit(flow, steps);
  if (limit.resource < 0) return;
  if (const auto* contention = steps.algorithm.link_contention()) add_contention(flow, limit, contention->value);
  limit_rate(flow, limit.rate, fmt::format("stores over {}", steps.op.context.resources.name(limit.resource)),
             reached_share(steps).name);
}

}  // namespace fabricast::models::nccl
