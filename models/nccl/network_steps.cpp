// SPDX-License-Identifier: Apache-2.0
// What the steps of an NCCL operation cost between hosts: proxies that hold a slice until it is complete, channels with
// few buffers, adapters that handle long messages in pieces. Equations: docs/MODELS.md, NCCL between hosts.
#include <fmt/format.h>

#include <algorithm>

#include "nccl/step_shape.hpp"

namespace fabricast::models::nccl {

/// In a chain whose ranks work on different iterations a rank is done once its data lie in the proxy's buffers, so the
/// way over the network overlaps with the next iteration.
bool StepCosts::is_hidden(const Hops& hops, const Shape& shape) const {
  return are_iterations_apart(shape) && is_network(hops.kind);
}

/// A network plugin is the slowest part of its ring, and two chunks of a channel may be on their way: the hops of later
/// loops hide behind the bytes that wait for it.
double StepCosts::paid_loops(const Hops& hops, const Shape& shape) const {
  return of_adapter(hops, "plugin_bandwidth") != nullptr ? 1 : shape.paid_loops;
}

/// What NCCL's network plugin adds on adapters without verbs: a time per message, and for messages of several packets
/// up to ramp more: ramp x m / (m + half), m bytes of the message.
void StepCosts::add_plugin(Flow& flow, const Hops& hops, const Shape& shape) const {
  const double count = hops.count * paid_loops(hops, shape);
  if (const auto* latency = of_adapter(hops, "plugin_latency"))
    add_latency(flow, {"NCCL's network plugin", from_seconds(count * latency->value), latency->name, latency->source});
  const auto* simple = of_adapter(hops, "plugin_simple_latency");
  if (simple != nullptr && shape.choice.protocol == Protocol::simple)
    add_latency(flow,
                {"the network plugin's rendezvous", from_seconds(count * simple->value), simple->name, simple->source});
  const auto* ramp = of_adapter(hops, "plugin_ramp_time");
  const auto* half = of_adapter(hops, "plugin_ramp_bytes");
  if (ramp == nullptr || half == nullptr) return;
  const double message = shape.chunk / shape.share;
  add_latency(flow, {"messages of several packets",
                     from_seconds(count * ramp->value * message / (message + half->value)), ramp->name, ramp->source});
}

/// All channels over one adapter together move at most what the plugin does, those of one process what its thread does.
/// Meanwhile the thread blocks do their local work.
void StepCosts::limit_plugin(Flow& flow, const Shape& shape) const {
  const double before = rate_alone(context_.resources, flow);
  const auto limit_by = [&](const Parameter* limit, int uses, const char* name) {
    if (limit == nullptr || uses == 0 || limit->value / uses >= flow.rate_cap) return;
    flow.rate_cap = limit->value / uses;
    flow.cap_name = name;
    flow.cap_parameter = limit->name;
  };
  for (const auto& hops : shape.pattern.hops) {
    limit_by(of_adapter(hops, "plugin_bandwidth"), hops.adapter_uses, "the network plugin");
    limit_by(of_adapter(hops, "plugin_process_bandwidth"), hops.duplex_uses, "one process of the network plugin");
  }
  const double sent = flow.payload / shape.share;
  if (flow.rate_cap < before) flow.bytes = std::max(std::min(sent, flow.bytes), flow.bytes * flow.rate_cap / before);
}

const Parameter* StepCosts::of_adapter(const Hops& hops, const char* field) const {
  if (hops.adapter.value < 0) return nullptr;
  return context_.parameters.find(fmt::format("{}.{}", context_.topology.device(hops.adapter).type, field));
}

/// Chunks of Simple are parts of NCCL's buffer, which the settings of a network plugin may enlarge.
double StepCosts::buffer_factor(const Pattern& pattern) const {
  for (const auto& hops : pattern.hops) {
    const auto* size = of_adapter(hops, "plugin_buffer_size");
    if (size != nullptr) return size->value / parameter("nccl.buffer_size").value;
  }
  return 1;
}

/// NVLSTree: chunks of every GPU's share in every channel, smaller while they would not fill the pipeline, and from
/// four hosts on at most half as large (NVIDIA/nccl src/enqueue.cc, calcCollChunking). In units of the flow, half a
/// channel.
double StepCosts::nvls_tree_chunk(const Shape& shape) const {
  const double chunks_at_once = shape.channels * is_.gpus_of_host;
  const double largest = parameter("nccl.chunk.nvls").value;
  double chunk = is_.num_hosts >= 4 ? largest / 2 : largest;
  const auto halve = [&](double passes, double above) {
    if (shape.size < passes * chunks_at_once * chunk && chunk > above) chunk /= 2;
  };
  halve(4, largest / 2);
  halve(1, largest / 4);
  return chunk * shape.channels / (2.0 * is_.graph_channels);
}

/// Where the thread of one process is the slowest part, other slices of Simple keep it busy while one is collected.
bool StepCosts::is_paced_by_process(const Flow& flow, const Hops& hops, const Shape& shape) const {
  const auto* limit = of_adapter(hops, "plugin_process_bandwidth");
  return shape.choice.protocol == Protocol::simple && limit != nullptr && flow.cap_parameter == limit->name;
}

const Parameter& StepCosts::store_and_forward(const Hops& hops, const Shape& shape) const {
  const bool is_ll = shape.choice.protocol == Protocol::ll;
  const auto* of_plugin = of_adapter(hops, is_ll ? "plugin_line_store_and_forward" : "plugin_store_and_forward");
  if (of_plugin != nullptr) return *of_plugin;
  const bool is_chain = shape.is_one_way && shape.choice.protocol == Protocol::simple;
  return parameter("nccl.network_store_and_forward", is_chain ? "chain" : (shape.is_nvls ? "nvls" : shape.protocol));
}

/// The proxy sends a slice when all of it lies in its buffer, and the GPU at the other end sees it when all of it has
/// arrived. Ring steps of Simple are two slices, send and receive go in chunks of their own, all others are one.
void StepCosts::add_store_and_forward(Flow& flow, const Shape& shape) const {
  const bool is_sliced = shape.choice.protocol == Protocol::simple && shape.is_ring;
  for (const auto& hops : shape.pattern.hops) {
    if (!is_network(hops.kind) || is_hidden(hops, shape) || is_paced_by_process(flow, hops, shape)) continue;
    const auto& factor = store_and_forward(hops, shape);
    double slice = is_sliced ? shape.chunk / 2 : shape.chunk;
    if (shape.is_pairs) {
      const auto* largest = of_adapter(hops, "plugin_p2p_chunk");
      slice = std::min(slice, largest != nullptr ? largest->value : parameter("nccl.p2p_network_chunk").value) /
              shape.pattern.shares;
    }
    add_latency(flow,
                {"network store and forward of slices",
                 from_seconds(factor.value * hops.count * slice / shape.share / rate_alone(context_.resources, flow)),
                 factor.name, factor.source});
  }
}

/// A channel has a few buffers towards the network and one proxy that serves them: in-flight bytes over their round
/// trip, which is long where peer requests between GPU and HCA are redirected to the root complex.
void StepCosts::limit_network_channels(Flow& flow, const Shape& shape) const {
  if (is_.num_hosts == 1) return;
  limit_plugin(flow, shape);
  limit_sockets(flow, shape);
  if (shape.is_nvls || shape.is_pairs || !is_.is_redirected || !has_hop(shape.pattern, TransportKind::network)) return;
  const auto* limit = context_.parameters.find(fmt::format("nccl.redirected_channel_bandwidth.{}", shape.protocol));
  if (limit == nullptr) return;
  double rate = limit->value / shape.share;
  // In the middle of a tree of hosts a connection sends each chunk to two, between two hosts to one.
  if (shape.is_tree && is_.num_hosts > 2) rate *= 0.5;
  if (rate >= flow.rate_cap) return;
  flow.rate_cap = rate;
  flow.cap_name = fmt::format("one channel's redirected network connection ({})", shape.protocol);
  flow.cap_parameter = limit->name;
}

}  // namespace fabricast::models::nccl
