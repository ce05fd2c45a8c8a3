// SPDX-License-Identifier: Apache-2.0
// NCCL's network plugins on adapters without verbs: what a message costs them, what they and their threads move.
#include <algorithm>

#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::nccl {

bool has_plugin(const Operation& op, const Hops& hops) { return op.of_adapter(hops, "plugin_bandwidth") != nullptr; }

void add_plugin(Flow& flow, const Hops& hops, const Steps& steps) {
  const auto& op = steps.op;
  const double count = hops.count * paid_loops(hops, steps);
  if (const auto* latency = op.of_adapter(hops, "plugin_latency"))
    add_latency(flow, {"NCCL's network plugin", from_seconds(count * latency->value), latency->name, latency->source});
  if (const auto* latency = hops.kind == TransportKind::socket ? nullptr : op.of_adapter(hops, "libfabric_latency"))
    add_latency(flow,
                {"NCCL's plugin over libfabric", from_seconds(count * latency->value), latency->name, latency->source});
}

namespace {

/// Whether the adapter takes what is sent from the GPU's memory itself.
bool leaves_gpu(const Hops& hops, const Operation& op) {
  return is_peer_to_peer(op.collective) ? hops.device_sends > 0 : hops.kind == TransportKind::network;
}

/// Bytes of one message on the wire.
double message_bytes(const Hops& hops, const Steps& steps) {
  return steps.algorithm.message(hops, steps.cut) / steps.op.share;
}

/// The limit up to which libfabric sends a message at once, where the messages of these hops are longer.
const Parameter* passed_eager_limit(const Hops& hops, const Steps& steps) {
  if (hops.kind == TransportKind::socket) return nullptr;
  const auto& op = steps.op;
  const Parameter* limit = nullptr;
  if (leaves_gpu(hops, op)) {
    if (op.group.sends_runts) limit = op.of_adapter(hops, "libfabric_runt");
    if (limit == nullptr) limit = op.of_adapter(hops, "libfabric_gpu_eager_limit");
  }
  if (limit == nullptr) limit = op.of_adapter(hops, "libfabric_eager_limit");
  return limit != nullptr && message_bytes(hops, steps) > limit->value ? limit : nullptr;
}

/// The provider of EFA exchanges packets in software; that of Slingshot leaves matching and reading to the adapters.
bool is_in_software(const Hops& hops, const Operation& op) { return provider_of(op.context, hops.adapter) == "efa"; }

/// What it takes the receiver to get a message that came at once into its GPU; null where it lands there. The provider
/// has the adapter read it out of its own buffers (prov/efa/src/rxr/rxr_pkt_entry.c of 2020, rxr_pkt_copy_to_rx).
const Parameter* copy_into_gpu(const Hops& hops, const Steps& steps) {
  if (!hops.lands_in_gpu || hops.kind == TransportKind::socket || !is_in_software(hops, steps.op)) return nullptr;
  if (passed_eager_limit(hops, steps) != nullptr) return nullptr;
  return steps.op.of_adapter(hops, "libfabric_receive_copy_time");
}

}  // namespace

/// A longer message is announced: header, answer (a request to read, or leave to send) and data each pass the network
/// (libfabric man/fi_cxi.7, Messaging; prov/efa/docs/efa_rdm_protocol_v4.md), and the provider's software where it does
/// that.
void add_rendezvous(Flow& flow, const Hops& hops, const Steps& steps) {
  const auto* limit = passed_eager_limit(hops, steps);
  if (limit == nullptr) return;
  const double passes = 2 * hops.count * paid_loops(hops, steps);
  const double one_way = hops.link_latency.seconds() + hops.adapter_latency.seconds();
  add_latency(flow, {"libfabric's rendezvous", from_seconds(passes * one_way), limit->name, limit->source});
  const auto* software = is_in_software(hops, steps.op) ? steps.op.of_adapter(hops, "plugin_latency") : nullptr;
  if (software != nullptr)
    add_latency(flow, {"libfabric's rendezvous, its software", from_seconds(passes * software->value), software->name,
                       software->source});
}

/// What an adapter wrote into a GPU's memory with Simple may be used once a read by the same adapter has come back, as
/// NCCL asks before Hopper (NVIDIA/nccl src/graph/paths.cc, ncclTopoNeedFlush). By libfabric the plugin reads from
/// its own host over the adapter (aws/aws-ofi-nccl, iflush), over EFA as the provider copies; over verbs NCCL's own
/// hops have it.
void add_flush(Flow& flow, const Hops& hops, const Steps& steps) {
  const auto& op = steps.op;
  if (!hops.lands_in_gpu || !op.is(Protocol::simple) || compute_capability(op.context, op.group.gpu) >= 90) return;
  if (op.of_adapter(hops, "libfabric_eager_limit") == nullptr || hops.kind == TransportKind::socket) return;
  const auto* local_read = is_in_software(hops, op) ? op.of_adapter(hops, "libfabric_receive_copy_time") : nullptr;
  const auto* named = local_read != nullptr ? local_read : op.of_adapter(hops, "latency");
  const double one = local_read != nullptr ? local_read->value : 2 * hops.adapter_latency.seconds();
  const double count = hops.count * paid_loops(hops, steps);
  add_latency(flow, {"the plugin's flush", from_seconds(count * one), named->name, named->source});
}

/// Packets of a message that came at once lie in the provider's buffers in host memory and are copied into the GPU, one
/// message after the other.
void add_copies_into_gpu(Flow& flow, const Hops& hops, const Steps& steps) {
  const auto* copy = copy_into_gpu(hops, steps);
  if (copy == nullptr) return;
  const double count = hops.count * paid_loops(hops, steps);
  add_latency(flow,
              {"libfabric's copies into GPU memory", from_seconds(count * copy->value), copy->name, copy->source});
}

/// Chunks that follow each other wait for the copies of those before them, and nothing is done before a process has
/// copied all that come to it.
void add_waits_for_copies(Flow& flow, const Steps& steps) {
  for (const auto& hops : steps.op.pattern.hops) {
    const auto* copy = copy_into_gpu(hops, steps);
    const auto train = steps.algorithm.train(steps.cut);
    if (copy == nullptr || train.chunks <= 1) continue;
    const double each = copy->value * std::max(1, hops.process_receives);
    // A train that is longer than the way meets itself.
    const double follow = std::min(train.chunks * each, flow.latency.seconds() / train.laps) - each;
    if (follow > 0)
      add_latency(flow, {"chunks behind libfabric's copies of others", from_seconds(follow), copy->name, copy->source});
    const double left = train.chunks * train.laps * each - flow.latency.seconds();
    if (left > 0) limit_rate(flow, flow.bytes / left, "libfabric's copies into GPU memory", copy->name);
  }
}

/// The provider writes a short message into its command, and the processor copies it out of the GPU's memory for that,
/// one after the other (libfabric man/fi_cxi.7, FI_CXI_DISABLE_NON_INJECT_MSG_IDC).
void add_immediate_copies(Flow& flow, const Hops& hops, const Steps& steps) {
  const auto& op = steps.op;
  const auto* limit = op.of_adapter(hops, "libfabric_immediate_limit");
  const auto* copy = op.of_adapter(hops, "libfabric_copy_time");
  if (limit == nullptr || copy == nullptr || hops.device_sends == 0 || hops.kind == TransportKind::socket) return;
  if (steps.algorithm.message(hops, steps.cut) / op.share > limit->value) return;
  const double sends = hops.device_sends * std::min(1.0, steps.cut.pair_channels / op.pattern.shares);
  add_latency(flow, {"libfabric's copies of short messages out of GPU memory", from_seconds(sends * copy->value),
                     copy->name, copy->source});
}

/// Of several joined adapters one carries a short message, several a longer one: as slow as the part of one is.
void add_rails(Flow& flow, const Hops& hops, const Steps& steps) {
  const auto& op = steps.op;
  const auto* rails = op.of_adapter(hops, "rails");
  if (rails == nullptr || op.group.one_rail_bytes <= 0 || hops.kind == TransportKind::socket) return;
  const double message = steps.algorithm.message(hops, steps.cut) / op.share;
  const double rate = device_value(op.context, hops.adapter, "rate");
  const double longer = std::min(message, op.group.one_rail_bytes) * rails->value / rate - message / rate;
  if (longer <= 0) return;
  add_latency(flow, {"messages on one of the plugin's rails",
                     from_seconds(hops.count * paid_loops(hops, steps) * longer), rails->name, rails->source});
}

/// A message for which its receiver has not posted lies in the provider's buffer in host memory, of an announced one
/// the header and its first bytes. The receiver's processor copies them to where they belong, one after the other,
/// beside what its thread does for the messages that it sends.
void limit_late_receivers(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (op.is_in_one_host() || !steps.algorithm.finds_late_receivers(steps.cut)) return;
  const double before = rate_alone(op.context.resources, flow);
  for (const auto& hops : op.pattern.hops) {
    const auto* copy = op.of_adapter(hops, "libfabric_receive_copy_time");
    if (copy == nullptr || !is_network(hops.kind) || hops.kind == TransportKind::socket) continue;
    if (is_in_software(hops, op)) continue;
    if (is_peer_to_peer(op.collective) && passed_eager_limit(hops, steps) == nullptr) continue;
    const double others = hops.process_uses - hops.process_receives;
    const double once = hops.process_receives * copy->value + others * message_time(hops, steps);
    const double connections = steps.cut.pair_channels / op.pattern.shares;
    limit_rate(flow, flow.payload / op.share / (steps.algorithm.messages(steps.cut) * connections * once),
               "the network plugin's late receives", copy->name);
  }
  hide_work_behind_limit(flow, steps, before);
}

/// All channels over one adapter together move at most what the plugin does, those of one process what its thread does.
/// Meanwhile the thread blocks do their local work.
void limit_plugin(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  const double before = rate_alone(op.context.resources, flow);
  const auto limit_by = [&](const Parameter* limit, int uses, const char* name) {
    if (limit != nullptr && uses > 0) limit_rate(flow, limit->value / uses, name, limit->name);
  };
  for (const auto& hops : op.pattern.hops) {
    limit_by(op.of_adapter(hops, "plugin_bandwidth"), hops.adapter_uses, "the network plugin");
    limit_by(op.of_adapter(hops, "plugin_process_bandwidth"), hops.duplex_uses * hops.connection_units,
             "one process of the network plugin");
  }
  hide_work_behind_limit(flow, steps, before);
}

namespace {

constexpr double k_own_buffer = 4.0 * 1024 * 1024, k_own_chunk = 128.0 * 1024;  // NCCL src/init.cc

/// Bytes that the user names, else those that the settings of a network plugin ask for, else NCCL's `own`.
double named_or_of_plugin(const Operation& op, ParameterStem name, double own, double of_plugin) {
  const double named = op.parameter(name).value;
  return named == own && of_plugin > 0 ? of_plugin : named;
}

}  // namespace

double buffer_size(const Operation& op) {
  return named_or_of_plugin(op, "nccl.buffer_size"_stem, k_own_buffer, op.group.buffer_size);
}

double buffer_factor(const Operation& op) { return buffer_size(op) / k_own_buffer; }

double network_chunk_of_pairs(const Operation& op) {
  const double chunk = named_or_of_plugin(op, "nccl.p2p_network_chunk"_stem, k_own_chunk, op.group.p2p_chunk);
  return std::min(chunk, buffer_size(op) / k_buffer_steps);
}

bool is_paced_by_process(const Flow& flow, const Hops& hops, const Steps& steps) {
  const auto* limit = steps.op.of_adapter(hops, "plugin_process_bandwidth");
  return steps.op.is(Protocol::simple) && limit != nullptr && flow.cap_parameter == limit->name;
}

}  // namespace fabricast::models::nccl
