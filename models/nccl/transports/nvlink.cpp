// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

namespace {

struct StoreLimit {
  double rate = std::numeric_limits<double>::infinity();
  int resource = -1;
  const Parameter* share = nullptr;
};

StoreLimit store_limit(const Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  const auto& reached = op.parameter("nccl.nvlink_store_share"_stem, steps.algorithm.store_name());
  const auto* of_links = steps.algorithm.link_share();
  const double share = reached.value * (of_links != nullptr ? of_links->value : 1);
  StoreLimit out;
  for (const auto& crossing : flow.crossings) {
    const auto& resources = op.context.resources;
    if (!is_link_of(resources, crossing, LinkKind::nvlink)) continue;
    const double limit = share * resources.capacity(crossing.resource) / crossing.times;
    if (limit < out.rate) out = {limit, crossing.resource, &reached};
  }
  return out;
}

}  // namespace

double rate_of_stores(const Flow& flow, const Steps& steps) { return store_limit(flow, steps).rate; }

void limit_nvlink_stores(Flow& flow, const Steps& steps) {
  auto limit = store_limit(flow, steps);
  if (limit.resource < 0) return;
  if (const auto* contention = steps.algorithm.link_contention()) {
    const double power = contention->value;
    const double ratio = std::min(limit.rate, flow.rate_cap) / std::max(limit.rate, flow.rate_cap);
    const double both = std::pow(1 + std::pow(ratio, power), -1 / power);
    flow.rate_cap *= both;
    limit.rate *= both;
  }
  limit_rate(flow, limit.rate, fmt::format("stores over {}", steps.op.context.resources.name(limit.resource)),
             limit.share->name);
}

}  // namespace fabricast::models::nccl
