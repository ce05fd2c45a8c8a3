// SPDX-License-Identifier: Apache-2.0
// Peer-to-peer over PCIe: thread blocks store into the memory of the next GPU while the one before stores into theirs.
#include "base/parameter_name.hpp"
#include "nccl/patterns.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

namespace {

/// No GPU sends while it receives; the ranks of a ring do, two as well as more.
bool goes_one_way(const Operation& op) {
  return is_chain(op.collective) ? op.num_ranks() == 2
                                 : op.collective == Collective::gather || op.collective == Collective::scatter;
}

}  // namespace

void limit_pcie_links(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (!op.is_in_one_host() || !op.has_hop(TransportKind::pcie) || goes_one_way(op)) return;
  const auto& resources = op.context.resources;
  limit_crossings(flow, resources, op.context.parameters.at("nccl.shm_both_ways_share"_key),
                  ", sent over and received over at once", [&](int one) {
                    return resources.is_link(one) && resources.topology().link(LinkId{one}).kind == LinkKind::pcie;
                  });
}

}  // namespace fabricast::models::nccl
