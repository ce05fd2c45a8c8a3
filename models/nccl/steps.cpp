// SPDX-License-Identifier: Apache-2.0
#include "nccl/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fabricast::models::nccl {

namespace {

void add_latency(Flow& flow, Term term) {
  flow.latency += term.time;
  flow.latency_terms.push_back(std::move(term));
}

}  // namespace

std::string architecture_of(int compute_capability) {
  return compute_capability >= 90 ? "hopper" : (compute_capability >= 80 ? "ampere" : "volta");
}

const Parameter& parameter_for(const ParameterSet& parameters, const std::string& architecture, const std::string& what,
                               std::string_view last) {
  const auto name = last.empty() ? what : fmt::format("{}.{}", what, last);
  return parameters.first_of({fmt::format("{}.{}", name, architecture), name});
}

/// How an operation is cut: bytes of payload per channel, per step, per chunk.
struct StepCosts::Shape {
  const Pattern& pattern;
  Choice choice;
  std::string protocol;
  double size = 0;
  double n = 0;
  bool is_pairs = false, is_one_way = false, is_tree = false, is_ring = false, is_nvls = false, is_shm = false;
  double share = 1;        ///< payload share of the protocol
  double per_channel = 0;  ///< bytes of the operation one channel handles
  double per_step = 0;     ///< of them in one step of a ring, all in a chain or tree
  double largest_chunk = 0;
  double chunk = 0;
  double loops = 1;  ///< chunks one after the other in a step
  double steps = 1;  ///< of a ring
};

StepCosts::Shape StepCosts::shape_of(const Pattern& pattern, const Choice& choice, std::size_t channels,
                                     Bytes size) const {
  Shape shape{.pattern = pattern, .choice = choice, .protocol = std::string(to_string(choice.protocol))};
  shape.size = static_cast<double>(size.value);
  shape.n = is_.num_ranks;
  shape.is_pairs = is_peer_to_peer(collective_);
  shape.is_one_way = collective_ == Collective::broadcast || collective_ == Collective::reduce;
  shape.is_nvls = choice.algorithm == Algorithm::nvls;
  shape.is_tree = choice.algorithm == Algorithm::tree;
  shape.is_ring = choice.algorithm == Algorithm::ring && !shape.is_one_way && !shape.is_pairs;
  shape.is_shm = std::any_of(pattern.hops.begin(), pattern.hops.end(),
                             [](const Hops& h) { return h.kind == TransportKind::host_memory; });
  shape.share = parameter("nccl.payload_share", shape.protocol).value;
  shape.per_channel = shape.size / (shape.is_nvls || shape.is_pairs ? 1 : static_cast<double>(channels));
  shape.per_step = shape.is_ring || shape.is_nvls ? shape.per_channel / shape.n : shape.per_channel;
  const auto* chunks = shape.is_tree ? "tree" : (shape.is_one_way ? "pipelined" : "ring");
  shape.largest_chunk = parameter(fmt::format("nccl.chunk.{}", chunks), shape.protocol).value;
  shape.chunk = std::min(shape.largest_chunk, std::max(shape.per_step, 1.0));
  shape.loops = std::max(1.0, std::ceil(shape.per_step / shape.largest_chunk));
  shape.steps = collective_ == Collective::all_reduce ? 2 * (shape.n - 1) : shape.n - 1;
  return shape;
}

const Parameter& StepCosts::channel_bandwidth(const Shape& shape) const {
  if (shape.is_shm) return context_.parameters.at(fmt::format("nccl.shm_channel_bandwidth.{}", shape.protocol));
  return parameter("nccl.channel_bandwidth", shape.protocol);
}

/// What the links and caps leave to the flow when nobody else uses them, in bytes on the wire.
double StepCosts::link_rate(const Flow& flow) const {
  double rate = flow.rate_cap;
  for (const auto& crossing : flow.crossings)
    rate = std::min(rate, context_.resources.capacity(crossing.resource) / crossing.times);
  return rate;
}

Term StepCosts::hop_term(const Hops& hops, const Shape& shape) const {
  const auto algorithm = to_string(shape.choice.algorithm);
  const auto& time = parameter(fmt::format("nccl.hop_time.{}.{}.{}", algorithm, shape.protocol, to_string(hops.kind)));
  // A chunk that fills all threads of the block takes longer than a few words.
  const double filled = std::min(1.0, shape.chunk / parameter("nccl.hop_fill_bytes", shape.protocol).value);
  const double flag = time.value + filled * parameter("nccl.hop_fill_time", shape.protocol).value;
  // Inside a host the figure is the whole flag exchange. Over the network the links come on top, and the adapters as
  // often as their latency lies in the way of one hop (receiver's credit, data, completion).
  double one = std::max(flag, hops.link_latency.seconds());
  if (is_network(hops.kind)) {
    one = time.value + hops.link_latency.seconds() +
          context_.parameters.number("nccl.network_one_ways") * hops.adapter_latency.seconds();
  }
  const double loops = shape.is_ring ? shape.loops : 1;
  return {fmt::format("{:.0f} hops over {}{}", hops.count * loops, to_string(hops.kind),
                      loops > 1 ? fmt::format(" ({:.0f} loops)", loops) : ""),
          from_seconds(hops.count * loops * one), time.name, time.source};
}

/// Trees pay their way up and down once, a ring goes round in every loop. Broadcast and reduce do not wait for the far
/// end: nccl-tests queues iterations, so the root is already in the next one and each rank pays one hop.
void StepCosts::add_hops(Flow& flow, const Shape& shape) const {
  for (auto hops : shape.pattern.hops) {
    if (shape.is_one_way) hops.count = std::min(hops.count, 1.0);
    add_latency(flow, hop_term(hops, shape));
    const double messages = is_network(hops.kind) ? context_.parameters.number("nccl.network_one_ways") : 1;
    for (auto term : hops.guest_terms) {
      term.time = from_seconds(term.time.seconds() * messages * hops.count * (shape.is_ring ? shape.loops : 1));
      add_latency(flow, std::move(term));
    }
  }
}

/// Bytes on the wire in units of one channel's flow, and the rate one channel's thread block reaches.
void StepCosts::add_bytes(Flow& flow, const Shape& shape) const {
  double payload = shape.per_channel;
  double parallel = 1;  // channels that share one unit of the flow
  if (shape.is_pairs) {
    payload = collective_ == Collective::all_to_all ? shape.size / shape.n : shape.size;
    parallel = std::clamp(std::ceil(payload / parameter("nccl.p2p_bytes_per_channel").value), 1.0,
                          static_cast<double>(is_.channels));
  } else if (shape.is_nvls) {
    payload = shape.size / (is_.gpus_of_host * (is_.num_hosts > 1 ? 2.0 * is_.graph_channels : 1.0));
  } else if (shape.is_ring) {
    // A hop's flag exchange carries the first bytes of every chunk.
    const double carried = std::min(shape.chunk, parameter("nccl.hop_bytes", shape.protocol).value);
    payload = (shape.per_step - carried) * shape.steps;
  } else if (shape.is_tree) {
    payload = shape.per_channel - shape.chunk;  // the first chunk fills the pipeline
  }
  flow.payload = std::max(0.0, payload);
  flow.bytes = payload / shape.share;
  const auto& copy = channel_bandwidth(shape);
  double rate = copy.value * parallel;
  if (shape.is_tree) {
    const auto place = shape.n > 2 ? "middle" : "end";
    rate *= parameter(fmt::format("nccl.tree_share.{}", place), shape.protocol).value;
  }
  flow.cap_name = fmt::format("one channel's thread block ({})", shape.protocol);
  flow.cap_parameter = copy.name;
  if (!shape.is_nvls) flow.rate_cap = rate / shape.share;
}

/// Each byte of a rank's own share is also copied to its place, by the thread block that could otherwise send. When
/// links are the bottleneck, that time is hidden once channels have drifted out of step: one copies while another
/// sends.
void StepCosts::add_local_copies(Flow& flow, const Shape& shape, double block) const {
  const auto* which = collective_ == Collective::all_reduce ? "all_reduce" : "all_gather";
  const auto& work = shape.is_shm ? context_.parameters.at(fmt::format("nccl.shm_local_work.{}", shape.protocol))
                                  : parameter(fmt::format("nccl.local_work.{}", which), shape.protocol);
  const double link = link_rate(flow) * shape.share;
  double bytes = work.value * shape.per_step;
  // (All-gather and reduce-scatter do not show it: their copies stay in the way at every size.)
  if (link < block && collective_ == Collective::all_reduce) {
    const auto& drift = parameter("nccl.drift_steps");
    const double loops_in_step = drift.value / shape.steps;
    const double loops = shape.per_step / shape.largest_chunk;
    const double hidden = work.value * shape.largest_chunk * loops_in_step * (1 - std::exp(-loops / loops_in_step));
    // A thread block that both sends and copies cannot be quicker than the two in turn.
    const double least = (work.value + shape.steps) * shape.per_step - shape.steps * shape.per_step * block / link;
    bytes = std::max({0.0, hidden, least});
  }
  add_latency(flow, {"local copies of the result", from_seconds(bytes / block), work.name, work.source});
}

/// The first chunk passes every hop of a tree alone, at the rate of the threads that send one way.
void StepCosts::add_tree_fill(Flow& flow, const Shape& shape) const {
  double hops = 0;
  for (const auto& one : shape.pattern.hops) hops += one.count;
  const auto& fill_share = parameter("nccl.tree_fill_share", shape.protocol);
  double rate = channel_bandwidth(shape).value * fill_share.value / shape.share;
  const double ways = shape.n > 2 ? 2 : 1;  // up and down share a link later, not yet
  for (const auto& crossing : flow.crossings)
    rate = std::min(rate, ways * context_.resources.capacity(crossing.resource) / crossing.times);
  add_latency(flow, {"filling the pipeline with the first chunk", from_seconds(hops * shape.chunk / shape.share / rate),
                     fill_share.name, fill_share.source});
}

void StepCosts::add_chunk_overhead(Flow& flow, const Shape& shape) const {
  const auto& step = parameter("nccl.chunk_overhead", shape.protocol);
  add_latency(flow, {fmt::format("{:.0f} chunks", shape.loops), from_seconds((shape.loops - 1) * step.value), step.name,
                     step.source});
}

void StepCosts::add_store_and_forward(Flow& flow, const Shape& shape) const {
  for (const auto& hops : shape.pattern.hops) {
    if (!is_network(hops.kind)) continue;
    const auto& factor = context_.parameters.at("nccl.network_store_and_forward");
    const double slice = shape.choice.protocol == Protocol::simple ? shape.chunk / 2 : shape.chunk;
    add_latency(flow, {"network store and forward of slices",
                       from_seconds(factor.value * hops.count * slice / shape.share / link_rate(flow)), factor.name,
                       factor.source});
  }
}

/// Thread blocks reach less of an NVLink with their stores (or NVLink SHARP operations) than a copy engine does.
void StepCosts::limit_nvlink_stores(Flow& flow, const Shape& shape) const {
  const auto& reached = parameter("nccl.nvlink_store_share", shape.is_nvls ? "nvls" : shape.protocol);
  for (const auto& crossing : flow.crossings) {
    const auto& resources = context_.resources;
    if (!resources.is_link(crossing.resource) ||
        context_.topology.link_kind(LinkId{crossing.resource}) != LinkKind::nvlink)
      continue;
    const double limit = reached.value * resources.capacity(crossing.resource) / crossing.times;
    if (limit >= flow.rate_cap) continue;
    flow.rate_cap = limit;
    flow.cap_name = fmt::format("stores over {}", resources.name(crossing.resource));
    flow.cap_parameter = reached.name;
  }
}

Round StepCosts::round(const Pattern& pattern, const Choice& choice, std::size_t channels, Bytes size) const {
  const auto shape = shape_of(pattern, choice, channels, size);
  Round round;
  round.label = fmt::format("{} {}", to_string(choice.algorithm), shape.protocol);
  Flow flow;
  flow.crossings = pattern.crossings;
  flow.legs = pattern.legs;
  add_hops(flow, shape);
  add_bytes(flow, shape);
  const double block = flow.rate_cap * shape.share;
  limit_nvlink_stores(flow, shape);
  if (shape.is_ring) add_local_copies(flow, shape, block);
  if (shape.is_tree) add_tree_fill(flow, shape);
  if (shape.is_one_way) add_chunk_overhead(flow, shape);
  if (!shape.is_one_way && !shape.is_nvls) add_store_and_forward(flow, shape);
  round.flows.push_back(std::move(flow));
  return round;
}

}  // namespace fabricast::models::nccl
