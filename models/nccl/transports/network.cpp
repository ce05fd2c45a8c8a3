// SPDX-License-Identifier: Apache-2.0
// Between hosts: proxies that hold a slice until it is complete, channels with few buffers. Equations:
// docs/models/nccl.md, between hosts.
#include <fmt/format.h>

#include <algorithm>

#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::nccl {

/// A network plugin is the slowest part of its ring, and two chunks of a channel may be on their way: the hops of later
/// loops hide behind the bytes that wait for it.
double paid_loops(const Hops& hops, const Steps& steps) {
  return has_plugin(steps.op, hops) ? 1 : steps.cut.paid_loops;
}

double message_time(const Hops& hops, const Steps& steps) {
  return hops.kind == TransportKind::socket ? socket_message_time(steps) : message_parameter(hops, steps).value;
}

const Parameter& message_parameter(const Hops& hops, const Steps& steps) {
  const auto& op = steps.op;
  if (hops.kind == TransportKind::socket) return op.context.parameters.at("nccl.socket_message_time"_key);
  if (const auto* own = op.of_adapter(hops, "libfabric_message_time")) return *own;
  const bool is_efa = provider_of(op.context, hops.adapter) == "efa";
  return op.context.parameters.at(is_efa ? "mpi.open-mpi-ofi.message_gap"_key : "mpi.verbs.message_gap"_key);
}

double proxy_time(const Hops& hops, const Steps& steps) {
  // Short pieces to a peer go by fewer channels than it has (pairs).
  const double share = std::min(1.0, steps.cut.pair_channels / steps.op.pattern.shares);
  return hops.process_meeting * share * message_time(hops, steps);
}

namespace {

/// Of LL over verbs a core finds the lines before they are sent.
bool checks_lines(const Hops& hops, const Operation& op) {
  return op.is(Protocol::ll) && hops.kind != TransportKind::socket && !has_plugin(op, hops);
}

const Parameter* store_and_forward_of_plugin(const Hops& hops, const Operation& op) {
  return op.of_adapter(hops, op.is(Protocol::ll) ? "plugin_line_store_and_forward" : "plugin_store_and_forward");
}

const Parameter& store_and_forward(const Hops& hops, const Steps& steps) {
  const auto* of_plugin = store_and_forward_of_plugin(hops, steps.op);
  return of_plugin != nullptr ? *of_plugin
                              : steps.op.parameter("nccl.network_store_and_forward"_stem, steps.algorithm.slice_name());
}

/// Threads of sockets copy what comes and what goes in turn, and what plugins take was taught with it.
bool waits_for_slices(const Hops& hops, const Steps& steps) {
  const bool is_in_threads =
      hops.kind == TransportKind::socket || store_and_forward_of_plugin(hops, steps.op) != nullptr;
  return is_in_threads || steps.algorithm.waits_for_slices();
}

}  // namespace

Term store_and_forward_term(const Flow& flow, const Hops& hops, const Steps& steps, double count) {
  const auto& op = steps.op;
  const double slice = steps.algorithm.slice(hops, steps.cut) / op.pattern.units / op.share;
  // Lines of LL lie in host memory until the sender's proxy has found all of a slice, one channel after the other;
  // meanwhile other channels' are on the wire.
  if (checks_lines(hops, op)) {
    const auto& check = op.context.parameters.at("nccl.line_check_bandwidth"_key);
    const double finding = slice * std::max(1, hops.process_sends) / check.value;
    const double sending = slice / rate_of_crossings(op.context.resources, flow);
    return {"lines that the proxy checks and sends", from_seconds(count * std::max(finding, sending)), check.name,
            check.source};
  }
  const auto& factor = store_and_forward(hops, steps);
  return {"network store and forward of slices",
          from_seconds(factor.value * count * slice / slice_rate(flow, hops, steps)), factor.name, factor.source};
}

/// Of several kinds of connections that peers have at once the slowest counts.
void add_store_and_forward(Flow& flow, const Steps& steps) {
  std::vector<Term> terms;
  for (const auto& hops : steps.op.pattern.hops) {
    const double count = steps.algorithm.paid_hops(hops);
    if (!is_network(hops.kind) || count <= 0 || !waits_for_slices(hops, steps)) continue;
    if (is_paced_by_process(flow, hops, steps)) continue;
    terms.push_back(store_and_forward_term(flow, hops, steps, count));
  }
  if (steps.algorithm.serves_peers_at_once() && !terms.empty())
    terms = {*std::ranges::max_element(terms, {}, &Term::time)};
  for (auto& term : terms) add_latency(flow, std::move(term));
}

void limit_line_checks(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  for (const auto& hops : op.pattern.hops) {
    if (!is_network(hops.kind) || !checks_lines(hops, op)) continue;
    const auto& check = op.context.parameters.at("nccl.line_check_bandwidth"_key);
    const double busy = flow.payload / op.share * hops.process_sends / check.value;
    const double left = busy - flow.latency.seconds();
    if (left > 0) limit_rate(flow, flow.bytes / left, "lines that one proxy checks", check.name);
  }
}

void hide_work_behind_limit(Flow& flow, const Steps& steps, double before) {
  const double sent = flow.payload / steps.op.share;
  if (flow.rate_cap < before) flow.bytes = std::max(std::min(sent, flow.bytes), flow.bytes * flow.rate_cap / before);
}

/// Of the link between an adapter and its switch, beside the channels that share it; where two children of a tree meet
/// at one, the link limits before.
void limit_network_links(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  const auto* reached = steps.algorithm.link_share();
  const auto is_on_adapter = [&](const Hops& hops) {
    return hops.kind == TransportKind::network && !has_plugin(op, hops);
  };
  if (reached == nullptr || std::ranges::none_of(op.pattern.hops, is_on_adapter)) return;
  const auto& resources = op.context.resources;
  double widest = 0;
  for (const auto& crossing : flow.crossings) {
    if (is_link_of(resources, crossing, LinkKind::network))
      widest = std::max(widest, resources.capacity(crossing.resource) / crossing.times);
  }
  if (widest > 0) limit_rate(flow, reached->value * widest, "what trees reach of a network's link", reached->name);
}

/// A channel has a few buffers towards the network and one proxy that serves them: in-flight bytes over their round
/// trip, which is long where peer requests between GPU and HCA are redirected to the root complex.
void limit_network_channels(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  if (op.is_in_one_host()) return;
  limit_plugin(flow, steps);
  limit_sockets(flow, steps);
  limit_network_links(flow, steps);
  if (const auto* reached = steps.algorithm.network_share()) {
    flow.rate_cap = reached->value * rate_alone(op.context.resources, flow);
    flow.cap_name = fmt::format("what {} reaches of the network", to_string(op.choice.algorithm));
    flow.cap_parameter = reached->name;
  }
  const double share = steps.algorithm.redirected_share();
  if (share <= 0 || !op.group.is_redirected || !op.has_hop(TransportKind::network)) return;
  const auto* limit = op.context.parameters.find(named<"nccl.redirected_channel_bandwidth.{}">(op.protocol));
  if (limit == nullptr) return;
  limit_rate(flow, limit->value / op.share * share / op.pattern.units,
             fmt::format("one channel's redirected network connection ({})", op.protocol), limit->name);
}

}  // namespace fabricast::models::nccl
