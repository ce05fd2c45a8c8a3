// SPDX-License-Identifier: Apache-2.0
// NCCL's network plugins on adapters without verbs: what a message costs them, what they and their threads move.
#include <algorithm>

#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

bool has_plugin(const Operation& op, const Hops& hops) { return op.of_adapter(hops, "plugin_bandwidth") != nullptr; }

/// A time per message, and for messages of several packets up to ramp more: ramp x m / (m + half), m bytes of the
/// message.
void add_plugin(Flow& flow, const Hops& hops, const Steps& steps) {
  const auto& op = steps.op;
  const double count = hops.count * paid_loops(hops, steps);
  if (const auto* latency = op.of_adapter(hops, "plugin_latency"))
    add_latency(flow, {"NCCL's network plugin", from_seconds(count * latency->value), latency->name, latency->source});
  if (const auto* latency = hops.kind == TransportKind::socket ? nullptr : op.of_adapter(hops, "libfabric_latency"))
    add_latency(flow,
                {"NCCL's plugin over libfabric", from_seconds(count * latency->value), latency->name, latency->source});
  const auto* simple = op.of_adapter(hops, "plugin_simple_latency");
  if (simple != nullptr && op.is(Protocol::simple))
    add_latency(flow,
                {"the network plugin's rendezvous", from_seconds(count * simple->value), simple->name, simple->source});
  const auto* ramp = op.of_adapter(hops, "plugin_ramp_time");
  const auto* half = op.of_adapter(hops, "plugin_ramp_bytes");
  if (ramp == nullptr || half == nullptr) return;
  const double message = steps.cut.chunk / op.share;
  add_latency(flow, {"messages of several packets",
                     from_seconds(count * ramp->value * message / (message + half->value)), ramp->name, ramp->source});
}

namespace {

/// The limit up to which libfabric sends a message at once, where the messages of these hops are longer.
const Parameter* passed_eager_limit(const Hops& hops, const Steps& steps) {
  const auto* limit = steps.op.of_adapter(hops, "libfabric_eager_limit");
  if (limit == nullptr || hops.kind == TransportKind::socket) return nullptr;
  return steps.algorithm.message(hops, steps.cut) / steps.op.share > limit->value ? limit : nullptr;
}

}  // namespace

/// A longer message is announced and read by the receiving adapter: header, request and data each pass the network
/// (libfabric man/fi_cxi.7, Messaging). No software of the receiver is in it.
void add_rendezvous(Flow& flow, const Hops& hops, const Steps& steps) {
  const auto* limit = passed_eager_limit(hops, steps);
  if (limit == nullptr) return;
  const double one_way = hops.link_latency.seconds() + hops.adapter_latency.seconds();
  add_latency(flow, {"libfabric's rendezvous", from_seconds(hops.count * paid_loops(hops, steps) * 2 * one_way),
                     limit->name, limit->source});
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
    const auto* copy = op.of_adapter(hops, "libfabric_late_receive_time");
    if (copy == nullptr || !is_network(hops.kind) || hops.kind == TransportKind::socket) continue;
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

/// Chunks of Simple are parts of NCCL's buffer, which the settings of a network plugin may enlarge.
double plugin_buffer_factor(const Operation& op) {
  return op.group.buffer_size > 0 ? op.group.buffer_size / op.parameter("nccl.buffer_size"_stem).value : 1;
}

bool is_paced_by_process(const Flow& flow, const Hops& hops, const Steps& steps) {
  const auto* limit = steps.op.of_adapter(hops, "plugin_process_bandwidth");
  return steps.op.is(Protocol::simple) && limit != nullptr && flow.cap_parameter == limit->name;
}

}  // namespace fabricast::models::nccl
