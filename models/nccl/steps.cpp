// SPDX-License-Identifier: Apache-2.0
#include "nccl/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/parameter_name.hpp"
#include "fabricast/models/payload.hpp"
#include "nccl/algorithms/algorithm.hpp"
#include "nccl/transports/transports.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

namespace {

/// One proxy thread serves the sockets of all channels in turn.
double crowd_factor(const Operation& op, TransportKind kind) { return is_loopback(op, kind) ? op.channels : 1; }

/// At switches to faster links the first packet of a slice waits until all of it is there.
double whole_packet_time(const Hops& hops, const Steps& steps) {
  if (hops.whole_packet_wait == 0) return 0;
  const auto& op = steps.op;
  const double slice = steps.algorithm.slice(hops, steps.cut) / op.pattern.units / op.share;
  return hops.whole_packet_wait *
         first_frame(op.context.topology, op.context.parameters, op.context.topology.device(hops.adapter).type, slice);
}

Term hop_term(const Hops& hops, const Steps& steps) {
  const auto& op = steps.op;
  const bool is_inside = is_loopback(op, hops.kind);
  const auto time =
      hop_time(op.context.parameters, op.group.architecture, op.collective, steps.algorithm.hop_algorithm(hops),
               fmt::format("{}.{}", op.protocol, is_inside ? "loopback" : to_string(hops.kind)));
  // Inside a host the figure is the whole flag exchange; over the network links and adapters come on top.
  double exchange = time.value;
  if (is_inside) exchange = (exchange + socket_data_time(steps)) * scattered_threads_factor(op.context, op.group.gpu);
  exchange *= crowd_factor(op, hops.kind);
  double one = std::max(exchange, hops.link_latency.seconds());
  if (is_network(hops.kind))
    one = exchange + hops.link_latency.seconds() + whole_packet_time(hops, steps) + hops.adapter_latency.seconds();
  // Meanwhile the proxy serves what else it has on its way.
  const double served = is_network(hops.kind) && !is_inside ? proxy_time(hops, steps) : 0;
  const Parameter& longer = served > one ? message_parameter(hops, steps) : time;
  const double loops = steps.cut.loops;
  return {fmt::format("{:.0f} hops over {}{}{}", hops.count * loops, to_string(hops.kind),
                      served > one ? " while the proxy serves other messages" : "",
                      loops > 1 ? fmt::format(" ({:.0f} loops)", loops) : ""),
          from_seconds(hops.count * paid_loops(hops, steps) * std::max(one, served)), longer.name, longer.source};
}

/// A hop takes longer once a chunk is more than one instruction per thread: h(c) = ramp x c / (c + half).
Term ramp_term(const Steps& steps, double hops) {
  const auto& ramp = steps.op.parameter("nccl.hop_ramp_time"_stem, steps.op.protocol);
  const auto& half = steps.op.parameter("nccl.hop_ramp_bytes"_stem, steps.op.protocol);
  const double seconds = hops * ramp.value * steps.cut.chunk / (steps.cut.chunk + half.value);
  return {fmt::format("{:.0f} hops with larger chunks", hops), from_seconds(seconds), ramp.name, ramp.source};
}

/// The slowest of all channels in use counts in every hop; its delay grows with the logarithm of their number.
Term skew_term(const Steps& steps, double hops) {
  const auto& skew = steps.op.parameter("nccl.channel_skew"_stem, steps.op.protocol);
  const double channels = steps.algorithm.concurrent_channels();
  const double seconds = hops * skew.value * std::log2(std::max(1.0, channels));
  return {fmt::format("slowest of {:.0f} channels", channels), from_seconds(seconds), skew.name, skew.source};
}

/// What hops of one kind cost, each in so many loops; they are not empty.
double add_hops_of_kind(Flow& flow, const Hops& hops, const Steps& steps) {
  const auto& op = steps.op;
  const auto hop = hop_term(hops, steps);
  add_latency(flow, hop);
  const double count = hops.count * paid_loops(hops, steps);
  add_plugin(flow, hops, steps);
  add_rails(flow, hops, steps);
  add_rendezvous(flow, hops, steps);
  add_immediate_copies(flow, hops, steps);
  add_copies_into_gpu(flow, hops, steps);
  add_flush(flow, hops, steps);
  for (auto& delay : neighbour_delays(op.context, hops.kind, op.group.gpu, hop, count))
    add_latency(flow, std::move(delay));
  for (auto term : hops.guest_terms) {
    term.time = from_seconds(term.time.seconds() * count);
    add_latency(flow, std::move(term));
  }
  return count;
}

double time_of_kind(const Hops& hops, const Steps& steps) {
  Flow way;
  add_hops_of_kind(way, hops, steps);
  return way.latency.seconds();
}

/// Links inside a host are crossed while the network is.
bool is_beside_slower(const Hops& hops, const Steps& steps) {
  if (!steps.algorithm.serves_peers_at_once()) return false;
  const double time = time_of_kind(hops, steps);
  return std::ranges::any_of(steps.op.pattern.hops, [&](const Hops& other) {
    const double its_time = time_of_kind(other, steps);
    return its_time > time || (its_time == time && other.kind < hops.kind);
  });
}

/// Trees pay their way up and down once, a ring goes round in every loop.
void add_hops(Flow& flow, const Steps& steps) {
  double inside_hops = 0;
  for (auto hops : steps.op.pattern.hops) {
    if (is_beside_slower(hops, steps)) continue;
    hops.count = steps.algorithm.paid_hops(hops);
    if (hops.count <= 0) continue;
    const double count = add_hops_of_kind(flow, hops, steps);
    if (!is_network(hops.kind)) inside_hops += count;
  }
  if (!steps.algorithm.polls_flags()) return;
  if (steps.algorithm.has_ramp()) add_latency(flow, ramp_term(steps, inside_hops));
  add_latency(flow, skew_term(steps, inside_hops));
}

/// A connection over the network carries one message of an iteration at a time: ranks behind it wait where its way
/// takes longer than their kernels.
void add_wait_for_messages(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  const double share = steps.algorithm.share_behind_messages();
  if (share <= 0) return;
  Flow way;
  for (auto hops : op.pattern.hops) {
    if (!is_network(hops.kind)) continue;
    hops.count = 1;
    add_hops_of_kind(way, hops, steps);
    add_latency(way, store_and_forward_term(flow, hops, steps, 1));
  }
  const auto& base = parameter_by_algorithm(op.context.parameters, op.group.architecture, op.collective,
                                            "nccl.base_time"_stem, op.choice.algorithm, op.protocol);
  const double wait = way.latency.seconds() - base.value - time_alone(op.context.resources, flow).seconds();
  if (wait <= 0) return;
  const auto& longest = *std::ranges::max_element(way.latency_terms, {}, &Term::time);
  add_latency(flow, {fmt::format("waiting for the message before, {:.0f} % of the ranks", 100 * share),
                     from_seconds(share * wait), longest.parameter, longest.source});
}

/// Several thread blocks of a kernel start later than one and, while they fetch their work, one after the other; those
/// of rings take longer by protocol.
void add_channel_start(Flow& flow, const Steps& steps) {
  const auto& parameters = steps.op.context.parameters;
  const double channels = steps.algorithm.concurrent_channels();
  const auto add = [&](const Parameter& start, std::string_view what) {
    add_latency(flow, {fmt::format("{} {:.0f} channels", what, channels), from_seconds((channels - 1) * start.value),
                       start.name, start.source});
  };
  if (channels > 1) {
    const auto& second = steps.op.parameter("nccl.second_channel_start"_stem);
    add_latency(flow, {"start of a second channel", from_seconds(second.value), second.name, second.source});
  }
  const auto names = steps.algorithm.channel_start_names();
  if (!names.empty()) add(parameters.first_of(names), "start of");
  for (const auto& name : steps.algorithm.protocol_start_names()) {
    if (const auto* start = parameters.find(name)) return add(*start, "start of the protocol on");
  }
}

/// What the thread block of one channel moves, by the slowest kind of connection it serves. Sends move no more through
/// host memory than between GPUs: what an H200 reaches there is more than Ampere reaches over NVLink.
BlockRate channel_bandwidth(const Steps& steps, bool is_in_loopback, bool through_host_memory) {
  const auto& op = steps.op;
  const auto of = [](const Parameter& parameter) { return BlockRate{parameter.value, parameter.name}; };
  if (is_in_loopback) return of(op.context.parameters.at("nccl.loopback_channel_bandwidth"_key));
  const auto between_gpus = [&] {
    return of(op.parameter("nccl.channel_bandwidth"_stem, steps.algorithm.bandwidth_name()));
  };
  if (!through_host_memory) return between_gpus();
  const auto shared = host_memory_rate(op);
  if (!is_peer_to_peer(op.collective)) return shared;
  const auto direct = between_gpus();
  return direct.value < shared.value ? direct : shared;
}

/// What of an operation moves single elements, and what is left of a thread block's rate there.
struct Unaligned {
  double part = 0;  ///< of all bytes, 0 to 1
  const Parameter* share = nullptr;
  double in_flight = 1;  ///< bytes that it moves at once, of what a copy does
};

/// nccl-tests cut a buffer of float32 into equal blocks as they came, for all-gather and reduce-scatter until
/// NCCL 2.16, for all-to-all until 2.24; since then into multiples of 16 bytes. 0: all are aligned.
double unaligned_blocks(const Operation& op) {
  constexpr std::int64_t element = 4, aligned = 16;
  const bool is_pairs = has_parts(op.collective);
  const bool is_cut =
      is_pairs || op.collective == Collective::all_gather || op.collective == Collective::reduce_scatter;
  const int release = release_number(op.context.software.nccl_version);
  if (!is_cut || op.group.queued == 0 || op.is(Protocol::ll) || release >= (is_pairs ? 225 : 217)) return 0;
  const std::int64_t ranks = op.group.num_ranks;
  const std::int64_t block = static_cast<std::int64_t>(op.size) / element / ranks * element;
  std::int64_t count = 0;
  for (std::int64_t rank = 0; rank < std::min(ranks, aligned); ++rank) count += rank * block % aligned != 0 ? 1 : 0;
  return static_cast<double>(count) / static_cast<double>(std::min(ranks, aligned));
}

/// Simple moves blocks that are not 16-byte aligned element by element, LL128 in halves of its lines. Before 2.8 each
/// thread has one element on its way; GPUs that write into each other's buffers then find the same alignment at both
/// ends and stay with 16 bytes, but for a rank's own block, which is copied to another place. A sum has an element of
/// both operands on its way and moves three where a copy moves two.
Unaligned unaligned(const Operation& op) {
  const double blocks = unaligned_blocks(op);
  if (blocks == 0) return {};
  const auto& parameters = op.context.parameters;
  if (op.is(Protocol::ll128) || release_number(op.context.software.nccl_version) >= 208)
    return {blocks, &parameters.at("nccl.unaligned_share"_key)};
  const bool is_direct = op.is_in_one_host() && !op.has_hop(TransportKind::host_memory);
  const double own = 1.0 / (op.group.num_ranks - 1);
  return {is_direct && op.collective == Collective::all_gather ? own : blocks,
          &parameters.at("nccl.unaligned_share.plain"_key), op.collective == Collective::reduce_scatter ? 1.5 : 1};
}

/// Thread blocks move one part of the bytes slower than what else limits them, the other as before.
void slow_unaligned_blocks(Flow& flow, const Steps& steps, double rate_of_block) {
  const auto [part, share, in_flight] = unaligned(steps.op);
  if (part == 0) return;
  const double fast = rate_alone(steps.op.context.resources, flow);
  const double slow = rate_of_block * share->value * in_flight;
  if (slow >= fast) return;
  flow.rate_cap = 1 / ((1 - part) / fast + part / slow);
  flow.cap_name = fmt::format("one channel's thread block ({}), blocks not 16-byte aligned", steps.op.protocol);
  flow.cap_parameter = share->name;
}

/// What a thread block copies inside its GPU goes at its own rate, however slow the links are.
void copy_at_own_rate(Flow& flow, const Steps& steps, double rate_of_block) {
  const auto& op = steps.op;
  if (op.has_hop(TransportKind::host_memory) || op.has_hop(TransportKind::socket)) return;
  const double local = steps.algorithm.work(steps.cut).local / op.share / op.pattern.units;
  const double of_links = rate_alone(op.context.resources, flow);
  if (of_links < rate_of_block) flow.bytes -= local * (1 - of_links / rate_of_block);
}

/// Bytes on the wire in units of one channel's flow, and the rate one channel's thread block reaches.
void add_bytes(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  const bool is_in_loopback = is_loopback(op, TransportKind::socket) && op.has_hop(TransportKind::socket);
  const bool through_host_memory = op.has_hop(TransportKind::host_memory);
  const auto work = steps.algorithm.work(steps.cut);
  flow.payload = work.payload / op.pattern.units;
  // Over loopback a proxy thread limits; the thread block does its own work meanwhile.
  flow.bytes = (work.payload + (is_in_loopback ? 0 : work.moved)) / op.share / op.pattern.units;
  const auto copy = channel_bandwidth(steps, is_in_loopback, through_host_memory);
  const double rate = copy.value * work.parallel * steps.algorithm.reached_share() / op.pattern.units;
  flow.cap_name = fmt::format("one channel's thread block ({})", op.protocol);
  flow.cap_parameter = copy.name;
  const double beyond = steps.algorithm.bytes_beyond_hops(steps.cut, work) / (work.payload + work.moved);
  if (beyond > 0) flow.rate_cap = rate / op.share / beyond;
  if (is_in_loopback) flow.rate_cap *= loopback_speed(steps);
  if (through_host_memory) flow.rate_cap /= contention_at(op.context, op.group.gpu, 1).copy_slowdown;
}

}  // namespace

Node steps_node(const Operation& operation) {
  const auto algorithm = make_algorithm(operation);
  const Steps steps{operation, *algorithm, algorithm->cut()};
  Node node;
  node.label = fmt::format("{} {}", to_string(operation.choice.algorithm), operation.protocol);
  Flow flow;
  flow.crossings = operation.pattern.crossings;
  flow.legs = operation.pattern.legs;
  add_channel_start(flow, steps);
  algorithm->add_preparation(flow);
  add_hops(flow, steps);
  add_bytes(flow, steps);
  keep_slots_in_cache(flow, steps);
  const double rate_of_block = flow.rate_cap;
  queue_reads(flow, steps);
  hide_local_work(flow, steps, rate_of_block);
  limit_host_memories(flow, steps);
  limit_nvlink_stores(flow, steps);
  limit_pcie_links(flow, steps);
  copy_at_own_rate(flow, steps, rate_of_block);
  limit_network_channels(flow, steps);
  slow_unaligned_blocks(flow, steps, rate_of_block);
  algorithm->add_filling(flow, steps.cut);
  add_store_and_forward(flow, steps);
  limit_late_receivers(flow, steps);
  add_wait_for_messages(flow, steps);
  add_waits_for_copies(flow, steps);
  limit_line_checks(flow, steps);
  node.flows.push_back(std::move(flow));
  return node;
}

double blocks_of_pairs(const Operation& operation) { return make_algorithm(operation)->concurrent_channels(); }

}  // namespace fabricast::models::nccl
