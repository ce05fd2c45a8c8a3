// SPDX-License-Identifier: Apache-2.0
// Peer-to-peer over PCIe: thread blocks store into the memory of the next GPU while the one before stores into theirs.
#include "base/parameter_name.hpp"
#include "nccl/patterns.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

void limit_pcie_links(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (!op.is_in_one_host() || !op.has_hop(TransportKind::pcie)) return;
  if (is_chain(op.collective) && op.num_ranks() == 2) return;  // one sends, the other receives
  const auto& resources = op.context.resources;
  const auto& share = op.context.parameters.at("nccl.shm_both_ways_share"_key);
  for (const auto& crossing : flow.crossings) {
    if (!resources.is_link(crossing.resource)) continue;
    if (resources.topology().link(LinkId{crossing.resource}).kind != LinkKind::pcie) continue;
    limit_rate(flow, share.value * resources.capacity(crossing.resource) / crossing.times,
               resources.name(crossing.resource) + ", sent over and received over at once", share.name);
  }
}

}  // namespace fabricast::models::nccl
