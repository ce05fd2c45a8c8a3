// SPDX-License-Identifier: Apache-2.0
// NCCL's shared-memory transport: buffers in host memory that two GPUs write, read and poll.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::nccl {

namespace {

/// A GPU that sends over NVLink receives through host memory or the other way round.
bool has_one_way(const Operation& op) { return op.has_hop(TransportKind::nvlink); }

LinkId slowest_way(const Operation& op) {
  const auto link = slowest_way_to_memory(op.context, op.context.topology.host_of(op.group.gpu));
  FABRICAST_ASSERT(link.has_value(), "no path between a GPU and host memory");
  return *link;
}

/// What a device writes stays in the last-level cache, and is read and overwritten there, until two other lines of its
/// set come in between: devices write into two ways. Slots of all GPUs of a memory lie at random over the sets, 2 s / c
/// of them in each.
double share_in_memory(const Operation& op, const ChannelAlgorithm& algorithm, const Cut& cut) {
  const auto memory = staging_memory(op.context, op.group.gpu);
  const auto* cache = op.context.parameters.find(processor_of(op.context.topology, memory) + ".io_cache");
  if (cache == nullptr) return 1;
  const double slots = op.group.gpus_of_memory * op.channels * algorithm.buffered(cut) / op.share;
  const double lines = 2 * slots / (cache->value * op.context.parameters["host.io_cache_share"_key]);
  return 1 - std::exp(-lines) * (1 + lines);
}

/// NCCL gives a thread of Simple 8 packs of 16 bytes on their way, 4 below compute capability 8.0 (src/device/common.h,
/// COLL_UNROLL).
bool has_eight_packs(const Operation& op) {
  constexpr int first = 80;
  return op.group.library != Library::nccl || compute_capability(op.context, op.group.gpu) >= first;
}

/// What a thread block that only reads moves, of what it moves while it writes what it has read.
double one_way_gain(const Operation& op) {
  return has_eight_packs(op) ? op.context.parameters["nccl.shm_one_way_gain"_key]
                             : op.context.parameters["nccl.shm_one_way_gain.four_packs"_key];
}

/// Of the bytes that the largest thread block of Simple, 512 threads with 8 packs of 16 bytes each, has on their way,
/// what this one's share moves. Reads of host memory take so long that a block waits for them, and the longer the more
/// packs there are. A ring of slow channels has 256 threads; of send and receive 9 warps do nothing but receive
/// (src/device/sendrecv.h).
double share_of_full_block(const Operation& op) {
  if (!op.is(Protocol::simple)) return 1;
  constexpr double full_block = 512, receiving = 9 * 32;
  const double of_packs = has_eight_packs(op) ? 1 : op.context.parameters["nccl.shm_four_packs_share"_key];
  if (is_peer_to_peer(op.collective)) return of_packs * one_way_gain(op) * receiving / full_block;
  return of_packs * (op.group.library == Library::nccl ? op.most_threads / full_block : 1);
}

/// A thread of LL has one line on its way: it polls the line's flags before it asks for the next. The line takes its
/// time over the link after the wait for it, where Simple has asked for the next packs by then.
double rate_of_lines(const Operation& op, double over_any_link) {
  const double link = op.context.resources.capacity(slowest_way(op).value);
  return 1 / (1 / over_any_link + 1 / (op.share * link));
}

}  // namespace

std::optional<LinkId> slowest_way_to_memory(const PlanContext& context, int host) {
  const auto& topology = context.topology;
  std::optional<LinkId> slowest;
  for (const auto gpu : topology.devices(DeviceKind::gpu, host)) {
    const auto path = topology.path_in_host(gpu, staging_memory(context, gpu), {.may_use_nvlink = false});
    if (!path || path->links.empty()) continue;
    const auto own = path->links.front();
    if (!slowest || topology.link_bandwidth(own) < topology.link_bandwidth(*slowest)) slowest = own;
  }
  return slowest;
}

BlockRate host_memory_rate(const Operation& op) {
  const auto& full = op.parameter("nccl.shm_channel_bandwidth"_stem, op.protocol);
  const bool waits_for_lines = op.is(Protocol::ll) && op.group.library == Library::nccl;
  return {waits_for_lines ? rate_of_lines(op, full.value) : full.value * share_of_full_block(op), full.name};
}

void keep_slots_in_cache(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (!op.has_hop(TransportKind::host_memory)) return;
  const double share = share_in_memory(op, steps.algorithm, steps.cut);
  for (auto& crossing : flow.crossings) {
    if (op.context.resources.parameter(crossing.resource).ends_with(".memory_bandwidth"))
      crossing.times = static_cast<int>(std::lround(crossing.times * share));
  }
  std::erase_if(flow.crossings, [](const Crossing& crossing) { return crossing.times == 0; });
  const double gain = op.context.parameters["nccl.shm_cache_gain"_key];
  flow.rate_cap /= share + (1 - share) / gain;
}

/// What a GPU does alone, its first send and last receive, does not load host memory both ways: where the links limit,
/// the other GPUs that share it use the time, until the thread block itself would take longer. Two GPUs work in step
/// and hide nothing, nor do pairs that wait for the network. A GPU that sends or receives over NVLink beside it has one
/// way only and hides all.
void hide_local_work(Flow& flow, const Steps& steps, double rate_of_block) {
  const auto& op = steps.op;
  if (!steps.algorithm.hides_local_work() || !op.has_hop(TransportKind::host_memory)) return;
  const double of_blocks = has_one_way(op) ? rate_of_block : flow.rate_cap;
  const double of_links = rate_of_crossings(op.context.resources, flow);
  if (of_links >= of_blocks) return;
  const double sent = flow.payload / op.share;
  const double shown = has_one_way(op) ? 0 : (flow.bytes - sent) / std::max(1, op.group.gpus_of_memory - 1);
  flow.bytes = std::max(sent + shown, flow.bytes * of_links / of_blocks);
}

/// 1/r^2 = 1/(rate of the thread blocks)^2 + 1/(rate of the link)^2. A link carries less each way while both ways are
/// busy, and a thread block moves more while it only reads or only writes (own measurement). The narrower of both has
/// the name.
void queue_reads(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (!op.has_hop(TransportKind::host_memory)) return;
  const auto directions = steps.algorithm.directions();
  if (!op.is_in_one_host() && directions.apart > 0) return;  // pairs wait for the network
  const auto& resources = op.context.resources;
  double link = std::numeric_limits<double>::infinity();
  int narrowest = -1;
  const auto meet = [&](int resource, double rate) {
    if (rate >= link) return;
    link = rate;
    narrowest = resource;
  };
  if (op.is_in_one_host()) {
    for (const auto& crossing : flow.crossings) {
      if (!resources.is_link(crossing.resource)) continue;
      const auto kind = resources.topology().link(LinkId{crossing.resource}).kind;
      // The way to the memory controllers; of equal ones in a row a pattern names one.
      if (kind == LinkKind::pcie || kind == LinkKind::socket_internal)
        meet(crossing.resource, resources.capacity(crossing.resource) / crossing.times);
    }
  } else {
    // Over hosts adapters' links are on the way too, and a pattern leaves out links that limit less than these.
    const auto own = slowest_way(op);
    meet(own.value, resources.capacity(own.value) / op.channels);
  }
  if (narrowest < 0) return;
  link *= steps.algorithm.reached_of_links();
  const auto& parameters = op.context.parameters;
  const auto shares = has_one_way(op) ? Directions{1, 0, 0} : directions;
  // LL waits for the flag of every line whatever else a thread does.
  const double gain = op.is(Protocol::simple) ? one_way_gain(op) : 1;
  const auto& in_step = parameters.at("nccl.shm_both_ways_share"_key);
  const auto& apart = parameters.at("nccl.shm_apart_share"_key);
  double of_both = 0, of_blocks = 0, of_link = 0;  // seconds per byte
  const auto add = [&](double part, double blocks, double share) {
    of_both += part * std::hypot(1 / blocks, 1 / (share * link));
    of_blocks += part / blocks;
    of_link += part / (share * link);
  };
  const double blocks = flow.rate_cap;
  add(shares.one_way, blocks * gain, 1);
  add(shares.in_step, blocks, in_step.value);
  add(shares.apart, blocks, apart.value);
  flow.rate_cap = 1 / of_both;
  if (of_link <= of_blocks) return;
  const bool is_one_way = shares.one_way == 1;
  flow.cap_name = resources.name(narrowest) + (is_one_way ? ", by thread blocks" : ", read and written at once");
  flow.cap_parameter = is_one_way ? resources.parameter(narrowest) : shares.apart > 0 ? apart.name : in_step.name;
}

void limit_host_memories(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (!op.has_hop(TransportKind::host_memory) || op.group.gpus_of_memory >= op.group.gpus_of_host) return;
  const auto& resources = op.context.resources;
  limit_crossings(flow, resources, op.context.parameters.at("host.both_sockets_share"_key),
                  " beside the other socket's",
                  [&](int one) { return resources.parameter(one).ends_with(".memory_bandwidth"); });
}

}  // namespace fabricast::models::nccl
