// SPDX-License-Identifier: Apache-2.0
// NCCL's shared-memory transport: buffers in host memory that two GPUs write, read and poll.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

/// What a GPU does alone, its first send and last receive, does not load host memory both ways: where the links limit,
/// the other GPUs that share it use the time, until the thread block itself would take longer. Two GPUs work in step
/// and hide nothing, nor do pairs that wait for the network. A GPU that sends or receives over NVLink beside it has one
/// way only and hides all.
void hide_local_work(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (!steps.algorithm.hides_local_work()) return;
  const double of_links = rate_alone(op.context.resources, flow);
  if (!op.has_hop(TransportKind::host_memory) || of_links >= flow.rate_cap) return;
  const double sent = flow.payload / op.share;
  const bool has_one_way = op.has_hop(TransportKind::nvlink);
  const double shown = has_one_way ? 0 : (flow.bytes - sent) / std::max(1, op.group.gpus_of_memory - 1);
  flow.bytes = std::max(sent + shown, flow.bytes * of_links / flow.rate_cap);
}

/// 1/r^2 = 1/(rate of the thread blocks)^2 + 1/(rate of the link)^2: 1, 2, 4, 8 and 16 forced channels on two H200
/// (own logs) move 14.0, 22.3, 27.8, 33.5 and 33.7 GB/s, which is a link at 50 GB/s and blocks of 23 within 6 %.
void queue_reads(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (!op.has_hop(TransportKind::host_memory) || !op.is_in_one_host()) return;
  const auto& resources = op.context.resources;
  double link = std::numeric_limits<double>::infinity();
  for (const auto& crossing : flow.crossings) {
    if (!resources.is_link(crossing.resource)) continue;
    const auto kind = resources.topology().link(LinkId{crossing.resource}).kind;
    // The way to the memory controllers; of equal ones in a row a pattern names one.
    if (kind == LinkKind::pcie || kind == LinkKind::socket_internal)
      link = std::min(link, resources.capacity(crossing.resource) / crossing.times);
  }
  flow.rate_cap = 1 / std::hypot(1 / flow.rate_cap, 1 / link);
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
