// SPDX-License-Identifier: Apache-2.0
// NCCL's shared-memory transport: buffers in host memory that two GPUs write, read and poll.
#include <algorithm>

#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

/// GPUs that poll flags in the same host memory delay each other beyond the first two.
double polling_factor(const Operation& op) {
  return 1 + op.context.parameters["nccl.shm_polling"_key] * std::max(0, op.group.gpus_of_memory - 2);
}

/// Copies inside a GPU do not load host memory: where it limits, the other GPUs that share it use the time, until the
/// thread block itself would take longer. Two GPUs work in step and hide nothing, nor do pairs that wait for the
/// network.
void hide_local_work(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (!steps.algorithm.hides_local_work()) return;
  const double of_links = rate_alone(op.context.resources, flow);
  if (!op.has_hop(TransportKind::host_memory) || of_links >= flow.rate_cap) return;
  const double sent = flow.payload / op.share;
  const double visible = sent + (flow.bytes - sent) / std::max(1, op.group.gpus_of_memory - 1);
  flow.bytes = std::max(visible, flow.bytes * of_links / flow.rate_cap);
}

void limit_host_memories(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (!op.has_hop(TransportKind::host_memory) || op.group.gpus_of_memory >= op.group.gpus_of_host) return;
  const auto& share = op.context.parameters.at("host.both_sockets_share"_key);
  for (const auto& crossing : flow.crossings) {
    const auto& resources = op.context.resources;
    if (!resources.parameter(crossing.resource).ends_with(".memory_bandwidth")) continue;
    const double limit = share.value * resources.capacity(crossing.resource) / crossing.times;
    if (limit >= flow.rate_cap) continue;
    flow.rate_cap = limit;
    flow.cap_name = resources.name(crossing.resource) + " beside the other socket's";
    flow.cap_parameter = share.name;
  }
}

}  // namespace fabricast::models::nccl
