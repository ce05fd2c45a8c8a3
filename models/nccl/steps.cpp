// SPDX-License-Identifier: Apache-2.0
#include "nccl/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "nccl/step_shape.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

void add_latency(Flow& flow, Term term) {
  flow.latency += term.time;
  flow.latency_terms.push_back(std::move(term));
}

bool has_hop(const Pattern& pattern, TransportKind kind) {
  return std::any_of(pattern.hops.begin(), pattern.hops.end(), [kind](const Hops& h) { return h.kind == kind; });
}

Architecture architecture_of(const ParameterSet& parameters, int compute_capability) {
  constexpr std::string_view k_prefix = "architecture.";
  Architecture out;
  int first = 0;
  for (auto it = parameters.all().lower_bound(k_prefix);
       it != parameters.all().end() && it->first.starts_with(k_prefix); ++it) {
    const int from = static_cast<int>(it->second.value);
    const bool is_better = from <= compute_capability
                               ? from > first || first > compute_capability
                               : out.name.empty() || (first > compute_capability && from < first);
    if (!is_better) continue;
    first = from;
    out.name = it->first.substr(k_prefix.size());
  }
  out.is_own = first / 10 == compute_capability / 10;
  return out;
}

const Parameter& parameter_for(const ParameterSet& parameters, const std::string& architecture, const std::string& what,
                               std::string_view last) {
  const auto name = last.empty() ? what : fmt::format("{}.{}", what, last);
  return parameters.first_of({fmt::format("{}.{}", name, architecture), name});
}

const Parameter& parameter_by_algorithm(const ParameterSet& parameters, const std::string& architecture,
                                        Collective collective, const std::string& what, Algorithm algorithm,
                                        std::string_view last) {
  const auto name = fmt::format("{}.{}.{}", what, to_string(algorithm), last);
  std::vector<std::string> names{fmt::format("{}.{}", name, architecture), name};
  if (is_peer_to_peer(collective) || is_chain(collective)) {
    const auto other = fmt::format("{}.{}.{}", what, is_chain(collective) ? "chain" : "direct", last);
    names.insert(names.begin(), {fmt::format("{}.{}", other, architecture), other});
  }
  return parameters.first_of(names);
}

StepCosts::Shape StepCosts::shape_of(const Pattern& pattern, const Choice& choice, const ChannelUse& use,
                                     Bytes size) const {
  Shape shape{.pattern = pattern, .choice = choice, .protocol = std::string(to_string(choice.protocol))};
  shape.size = static_cast<double>(size.value);
  shape.n = is_.num_ranks;
  shape.channels = use.channels;
  shape.is_pairs = is_peer_to_peer(collective_);
  shape.is_one_way = is_chain(collective_);
  shape.is_nvls = choice.algorithm == Algorithm::nvls;
  shape.is_tree = choice.algorithm == Algorithm::tree;
  shape.is_ring = choice.algorithm == Algorithm::ring && !shape.is_one_way && !shape.is_pairs;
  shape.is_shm = has_hop(pattern, TransportKind::host_memory);
  shape.is_loopback = is_loopback(TransportKind::socket) && has_hop(pattern, TransportKind::socket);
  shape.share = parameter("nccl.payload_share", shape.protocol).value;
  shape.filled = use.filled > 0 ? use.filled : shape.channels;
  shape.per_channel = shape.size / (shape.is_nvls || shape.is_pairs ? 1 : shape.filled);
  shape.per_step = shape.is_ring || shape.is_nvls ? shape.per_channel / shape.n : shape.per_channel;
  const auto* chunks = shape.is_tree || shape.is_one_way ? "pipelined" : "ring";
  shape.largest_chunk = parameter(fmt::format("nccl.chunk.{}", chunks), shape.protocol).value;
  if (choice.protocol == Protocol::simple) shape.largest_chunk *= buffer_factor(pattern);
  if (shape.is_tree && choice.protocol == Protocol::ll128) shape.largest_chunk = tree_ll128_chunk(shape);
  if (shape.is_nvls && is_.num_hosts > 1) shape.largest_chunk = nvls_tree_chunk(shape);
  shape.chunk = std::min(shape.largest_chunk, std::max(shape.per_step, 1.0));
  shape.loops = std::max(1.0, std::ceil(shape.per_step / shape.largest_chunk));
  // Later loops overlap with earlier ones: they pay a share of their hops.
  if (shape.is_ring) shape.paid_loops = 1 + (shape.loops - 1) * parameter("nccl.later_loops", shape.protocol).value;
  shape.steps = collective_ == Collective::all_reduce ? 2 * (shape.n - 1) : shape.n - 1;
  if (shape.is_pairs)
    shape.pair_channels =
        pair_channels(shape, collective_ == Collective::all_to_all ? shape.size / shape.n : shape.size);
  return shape;
}

/// NCCL halves the chunks of an LL128 tree until enough of them fill its pipeline (NVIDIA/nccl src/enqueue.cc,
/// calcCollChunking).
double StepCosts::tree_ll128_chunk(const Shape& shape) const {
  const double ranks_per_host = shape.n / is_.num_hosts;
  const double steps = 1 + std::floor(std::log2(static_cast<double>(is_.num_hosts))) + 0.1 * ranks_per_host;
  double chunk = parameter("nccl.chunk.ring", shape.protocol).value;
  const auto halve = [&](double chunks, double least) {
    while (std::floor(shape.per_channel / chunk) < steps * chunks / ranks_per_host && chunk > least) chunk /= 2;
  };
  halve(64, 131072);
  halve(16, 32768);
  return chunk;
}

/// What the thread block of one channel moves, by the slowest kind of connection it serves.
const Parameter& StepCosts::channel_bandwidth(const Shape& shape) const {
  if (shape.is_loopback) return context_.parameters.at("nccl.loopback_channel_bandwidth");
  const bool is_direct = shape.is_pairs && shape.choice.protocol == Protocol::simple;
  if (shape.is_shm) return parameter("nccl.shm_channel_bandwidth", is_direct ? "direct" : shape.protocol);
  if (shape.is_one_way && shape.choice.protocol == Protocol::ll) return parameter("nccl.channel_bandwidth.chain.ll");
  return parameter("nccl.channel_bandwidth", is_direct ? "direct" : shape.protocol);
}

/// GPUs that poll flags in the same host memory delay each other beyond the first two; one proxy thread serves the
/// sockets of all channels in turn.
double StepCosts::crowd_factor(const Shape& shape, TransportKind kind) const {
  if (is_loopback(kind)) return shape.channels;
  if (kind != TransportKind::host_memory) return 1;
  return 1 + context_.parameters.number("nccl.shm_polling") * std::max(0, is_.gpus_of_memory - 2);
}

/// With one GPU in every host nothing of a ring hides the network: NCCL plans a tree's hop for it from 2.23 on. It
/// plans both the same for Simple; over plugins it is they that take the time.
Algorithm StepCosts::hop_algorithm(const Hops& hops, const Shape& shape) const {
  const bool is_lone = shape.is_ring && is_network(hops.kind) && is_.num_hosts > 1 && is_.num_ranks == is_.num_hosts;
  const bool is_other = shape.choice.protocol == Protocol::simple || of_adapter(hops, "plugin_latency") != nullptr;
  return is_lone && !is_other ? Algorithm::tree : shape.choice.algorithm;
}

Term StepCosts::hop_term(const Hops& hops, const Shape& shape) const {
  const auto& time = parameter_by_algorithm(
      context_.parameters, is_.architecture, collective_, "nccl.hop_time", hop_algorithm(hops, shape),
      fmt::format("{}.{}", shape.protocol, is_loopback(hops.kind) ? "loopback" : to_string(hops.kind)));
  // Inside a host the figure is the whole flag exchange; over the network links and adapters come on top.
  double exchange = time.value;
  if (is_loopback(hops.kind))
    exchange = (exchange + socket_data_time(shape)) * scattered_threads_factor(context_, is_.gpu);
  exchange *= crowd_factor(shape, hops.kind);
  double one = std::max(exchange, hops.link_latency.seconds());
  if (is_network(hops.kind))
    one = exchange + socket_queue_time(hops, shape) + hops.link_latency.seconds() + hops.adapter_latency.seconds();
  return {fmt::format("{:.0f} hops over {}{}", hops.count * shape.loops, to_string(hops.kind),
                      shape.loops > 1 ? fmt::format(" ({:.0f} loops)", shape.loops) : ""),
          from_seconds(hops.count * paid_loops(hops, shape) * one), time.name, time.source};
}

/// A hop takes longer once a chunk is more than one instruction per thread: h(c) = ramp x c / (c + half).
Term StepCosts::ramp_term(const Shape& shape, double hops) const {
  const auto& ramp = parameter("nccl.hop_ramp_time", shape.protocol);
  const auto& half = parameter("nccl.hop_ramp_bytes", shape.protocol);
  const double seconds = hops * ramp.value * shape.chunk / (shape.chunk + half.value);
  return {fmt::format("{:.0f} hops with larger chunks", hops), from_seconds(seconds), ramp.name, ramp.source};
}

/// The slowest of all channels in use counts in every hop; its delay grows with the logarithm of their number.
Term StepCosts::skew_term(const Shape& shape, double hops) const {
  const auto& skew = parameter("nccl.channel_skew", shape.protocol);
  const double channels = shape.is_pairs ? rank_channels(shape) : shape.channels;
  const double seconds = hops * skew.value * std::log2(std::max(1.0, channels));
  return {fmt::format("slowest of {:.0f} channels", channels), from_seconds(seconds), skew.name, skew.source};
}

/// Channels on which one rank exchanges with all its peers.
double StepCosts::rank_channels(const Shape& shape) const {
  const bool is_all = collective_ == Collective::all_to_all;
  const double channels = pair_channels(shape, is_all ? shape.size / shape.n : shape.size) * (is_all ? shape.n - 1 : 1);
  return std::min(channels, std::max(32.0, static_cast<double>(is_.channels)));
}

/// Whether the ranks of a chain (broadcast, reduce) work on different iterations, of which nccl-tests queues many: with
/// LL and LL128 the root is already in the next one and each rank pays one hop. Simple writes into the receiver's own
/// buffer, so every rank waits until the next one has begun. Over several hosts the channels pass them in different
/// orders: a rank that is late in one channel holds up all others.
bool StepCosts::are_iterations_apart(const Shape& shape) const {
  if (!shape.is_one_way || shape.choice.protocol == Protocol::simple) return false;
  return is_.num_hosts == 1 || shape.channels < 2;
}

/// In send-receive every rank has one peer: some cross a link inside their host while others cross the network, and the
/// slowest is waited for.
bool StepCosts::is_beside_slower(const Hops& hops, const Shape& shape) const {
  if (collective_ != Collective::send_receive) return false;
  const auto time = hop_term(hops, shape).time;
  return std::any_of(shape.pattern.hops.begin(), shape.pattern.hops.end(), [&](const Hops& other) {
    const auto its_time = hop_term(other, shape).time;
    return its_time > time || (its_time == time && &other < &hops && other.kind != hops.kind);
  });
}

/// Trees pay their way up and down once, a ring goes round in every loop.
void StepCosts::add_hops(Flow& flow, const Shape& shape) const {
  double inside_hops = 0;
  for (auto hops : shape.pattern.hops) {
    if (is_hidden(hops, shape) || is_beside_slower(hops, shape)) continue;
    if (are_iterations_apart(shape)) hops.count = std::min(hops.count, 1.0);
    const auto hop = hop_term(hops, shape);
    add_latency(flow, hop);
    const double count = hops.count * paid_loops(hops, shape);
    if (!is_network(hops.kind)) inside_hops += count;
    add_plugin(flow, hops, shape);
    for (auto& delay : neighbour_delays(context_, hops.kind, is_.gpu, hop, count)) add_latency(flow, std::move(delay));
    for (auto term : hops.guest_terms) {
      term.time = from_seconds(term.time.seconds() * count);
      add_latency(flow, std::move(term));
    }
  }
  if (shape.is_nvls) return;
  add_latency(flow, ramp_term(shape, inside_hops));
  add_latency(flow, skew_term(shape, inside_hops));
}

/// The thread blocks of a kernel start one after the other; those of rings may take longer than others. From 2.22 on
/// the work of a collective lies in the kernel's arguments; before, every thread block fetches its own from a queue.
void StepCosts::add_channel_start(Flow& flow, const Shape& shape) const {
  if (!shape.is_pairs && release_number(context_.software.nccl_version) >= 222) return;
  std::vector<std::string> names{"nccl.channel_start." + is_.architecture, "nccl.channel_start"};
  if (shape.is_ring)
    names.insert(names.begin(), fmt::format("nccl.channel_start.ring.{}.{}", shape.protocol, is_.architecture));
  const auto& start = context_.parameters.first_of(names);
  const double channels = shape.is_pairs ? rank_channels(shape) : shape.channels;
  add_latency(flow, {fmt::format("start of {:.0f} channels", channels), from_seconds((channels - 1) * start.value),
                     start.name, start.source});
}

/// NCCL gives a channel as many threads as one step of a ring needs (64 to 512). A chain moves a whole message in one
/// step: with LL every thread passes on line after line of 8 bytes, and waits for the flag of each.
void StepCosts::add_thread_loops(Flow& flow, const Shape& shape) const {
  if (!shape.is_one_way || shape.choice.protocol != Protocol::ll) return;
  const double threads = std::clamp(shape.size / (8 * shape.n), 64.0, 512 * shape.filled);
  const double loops = std::max(1.0, shape.size / (8 * threads));
  const auto& one = parameter("nccl.thread_loop_time", shape.protocol);
  add_latency(flow, {fmt::format("{:.0f} lines per thread", loops), from_seconds((loops - 1) * one.value), one.name,
                     one.source});
}

/// Channels that one pair of ranks uses in send and receive: NCCL doubles its least number while a part is larger than
/// 32 buffer steps; over the network all pairs have few (pairs.cpp), inside a host the least number shrinks until all
/// ranks together fit the channels there are (NVIDIA/nccl src/enqueue.cc, calcP2pChannelCount). A broken number of them
/// so that more bytes never take less time.
double StepCosts::pair_channels(const Shape& shape, double bytes) const {
  double all = 1;
  while (all < static_cast<double>(is_.channels) && all < 32) all *= 2;
  if (is_.num_hosts > 1) all = std::min<double>(all, shape.pattern.pair_channels);
  double least = all;
  while (is_.num_hosts == 1 && least > 2 && least * is_.num_ranks > all) least /= 2;
  const double largest_part = context_.parameters.at("nccl.p2p_largest_part").value;
  while (2 * least <= all && bytes / least > largest_part) least *= 2;
  return std::max(1.0, std::min(least, bytes / parameter("nccl.p2p_bytes_per_channel").value));
}

/// Bytes on the wire in units of one channel's flow, and the rate one channel's thread block reaches.
void StepCosts::add_bytes(Flow& flow, const Shape& shape) const {
  double payload = shape.per_channel;
  double moved = 0;     // beyond it, by the thread block
  double parallel = 1;  // channels that share one unit of the flow
  if (shape.is_pairs) {
    const bool is_all = collective_ == Collective::all_to_all;
    payload = is_all ? shape.size / shape.n : shape.size;
    const double channels = pair_channels(shape, payload);
    const double chunk = std::min(payload / channels, parameter("nccl.chunk.pipelined", shape.protocol).value);
    // Inside one host the rate through host memory was fitted with it.
    if (!shape.is_shm || is_.num_hosts > 1) moved = parameter("nccl.first_chunk.direct").value * chunk * channels;
    const double shares = shape.pattern.shares;
    payload /= shares;
    moved /= shares;
    parallel = channels * (is_all ? shape.n - 1 : 1) / shares;
  } else if (shape.is_nvls) {
    payload = shape.size / (is_.gpus_of_host * (is_.num_hosts > 1 ? 2.0 * is_.graph_channels : 1.0));
  } else if (shape.is_ring) {
    const auto* which = collective_ == Collective::all_reduce ? "all_reduce" : "all_gather";
    const auto work = shape.is_shm ? std::string("nccl.shm_local_work") : fmt::format("nccl.local_work.{}", which);
    payload = shape.per_step * shape.steps;
    moved = shape.per_step * parameter(work, shape.protocol).value;
  }
  // The first chunk is complete before it is passed on; a tree's passes every hop alone (add_tree_fill).
  if (shape.is_tree && is_.num_hosts == 1) {
    if (shape.choice.protocol == Protocol::simple) moved -= shape.chunk;
  } else if (!shape.is_pairs && !shape.is_nvls) {
    moved += parameter("nccl.first_chunk", shape.protocol).value * shape.chunk;
  }
  // Over loopback a proxy thread limits; the thread block does its own work meanwhile.
  if (shape.is_loopback) moved = 0;
  flow.payload = payload;
  flow.bytes = (payload + moved) / shape.share;
  const auto& copy = channel_bandwidth(shape);
  double rate = copy.value * parallel;
  if (shape.is_tree) {
    // In the middle of a chain some threads of the block send up, the others down.
    rate *= parameter(fmt::format("nccl.tree_share.{}", shape.n > 2 ? "middle" : "end"), shape.protocol).value;
  }
  flow.cap_name = fmt::format("one channel's thread block ({})", shape.protocol);
  flow.cap_parameter = copy.name;
  if (!shape.is_nvls) flow.rate_cap = rate / shape.share;
  if (shape.is_loopback) flow.rate_cap *= thread_speed();
  if (shape.is_shm) flow.rate_cap /= contention_at(context_, is_.gpu, 1).copy_slowdown;
}

/// With Simple the first chunk of every channel passes every hop of a tree alone, as fast as the NVLinks and the
/// channels' thread blocks let it. LL and LL128 pass lines on as they come, but every further chunk of LL128 costs.
void StepCosts::add_tree_fill(Flow& flow, const Shape& shape) const {
  if (shape.choice.protocol == Protocol::ll) return;
  if (shape.choice.protocol == Protocol::ll128) {
    const auto& step = parameter("nccl.chunk_overhead", shape.protocol);
    add_latency(flow, {fmt::format("{:.0f} chunks", shape.loops), from_seconds((shape.loops - 1) * step.value),
                       step.name, step.source});
    return;
  }
  double hops = 0;
  for (const auto& one : shape.pattern.hops) hops += one.count;
  const auto& filling = parameter("nccl.fill_bandwidth", shape.protocol);
  double rate = filling.value;
  const double reached = parameter("nccl.nvlink_store_share", shape.protocol).value * shape.share / shape.channels;
  for (const auto& crossing : flow.crossings)
    if (is_nvlink(crossing)) rate = std::min(rate, reached * context_.resources.capacity(crossing.resource));
  add_latency(flow, {"filling the pipeline with the first chunk", from_seconds(hops * shape.chunk / rate), filling.name,
                     filling.source});
}

/// Copies inside a GPU do not load host memory: where it limits, the other GPUs that share it use the time, until the
/// thread block itself would take longer. Two GPUs work in step and hide nothing, nor do pairs that wait for the
/// network.
void StepCosts::hide_local_work(Flow& flow, const Shape& shape) const {
  if (shape.is_pairs && is_.num_hosts > 1) return;
  const double of_links = rate_alone(context_.resources, flow);
  if (!shape.is_shm || of_links >= flow.rate_cap) return;
  const double sent = flow.payload / shape.share;
  const double visible = sent + (flow.bytes - sent) / std::max(1, is_.gpus_of_memory - 1);
  flow.bytes = std::max(visible, flow.bytes * of_links / flow.rate_cap);
}

/// When the GPUs of both sockets work through host memory, each memory gives less than alone.
void StepCosts::limit_host_memories(Flow& flow, const Shape& shape) const {
  if (!shape.is_shm || is_.gpus_of_memory >= is_.gpus_of_host) return;
  const auto& share = context_.parameters.at("host.both_sockets_share");
  for (const auto& crossing : flow.crossings) {
    const auto& resources = context_.resources;
    if (!resources.parameter(crossing.resource).ends_with(".memory_bandwidth")) continue;
    const double limit = share.value * resources.capacity(crossing.resource) / crossing.times;
    if (limit >= flow.rate_cap) continue;
    flow.rate_cap = limit;
    flow.cap_name = resources.name(crossing.resource) + " beside the other socket's";
    flow.cap_parameter = share.name;
  }
}

bool StepCosts::is_nvlink(const Crossing& crossing) const {
  return context_.resources.is_link(crossing.resource) &&
         context_.topology.link_kind(LinkId{crossing.resource}) == LinkKind::nvlink;
}

/// Thread blocks reach less of an NVLink with their stores (or NVLink SHARP operations) than a copy engine does.
void StepCosts::limit_nvlink_stores(Flow& flow, const Shape& shape) const {
  const auto& reached =
      parameter("nccl.nvlink_store_share", shape.is_nvls ? (is_.num_hosts > 1 ? "nvls_tree" : "nvls") : shape.protocol);
  const double share = reached.value * (shape.is_tree ? parameter("nccl.nvlink_tree_share").value : 1.0);
  for (const auto& crossing : flow.crossings) {
    const auto& resources = context_.resources;
    if (!is_nvlink(crossing)) continue;
    const double limit = share * resources.capacity(crossing.resource) / crossing.times;
    if (limit >= flow.rate_cap) continue;
    flow.rate_cap = limit;
    flow.cap_name = fmt::format("stores over {}", resources.name(crossing.resource));
    flow.cap_parameter = reached.name;
  }
}

Node StepCosts::node(const Pattern& pattern, const Choice& choice, const ChannelUse& use, Bytes size) const {
  const auto shape = shape_of(pattern, choice, use, size);
  Node node;
  node.label = fmt::format("{} {}", to_string(choice.algorithm), shape.protocol);
  Flow flow;
  flow.crossings = pattern.crossings;
  flow.legs = pattern.legs;
  add_channel_start(flow, shape);
  add_thread_loops(flow, shape);
  add_hops(flow, shape);
  add_bytes(flow, shape);
  hide_local_work(flow, shape);
  limit_host_memories(flow, shape);
  limit_nvlink_stores(flow, shape);
  limit_network_channels(flow, shape);
  if (shape.is_tree) add_tree_fill(flow, shape);
  add_store_and_forward(flow, shape);
  node.flows.push_back(std::move(flow));
  return node;
}

}  // namespace fabricast::models::nccl
