// SPDX-License-Identifier: Apache-2.0
// NCCL's socket transport: one thread per GPU, its proxy, sends and receives what all channels of that GPU exchange,
// and copies it through the kernel; each connection is one TCP stream, which one core of the receiver takes in. Helper
// threads, where NCCL starts them, take the copies over. Equations: docs/models/nccl.md, sockets between hosts.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

bool is_loopback(const Operation& op, TransportKind kind) {
  return kind == TransportKind::socket && op.is_in_one_host();
}

/// A short message travels in NCCL's header, a longer one behind it: one more pass of the kernel on both sides.
double socket_data_time(const Steps& steps) {
  const auto& parameters = steps.op.context.parameters;
  const bool is_inline = steps.cut.chunk / steps.op.share <= parameters.at("nccl.socket_inline"_key).value;
  return is_inline ? 0.0 : parameters.at("nccl.socket_data_time"_key).value;
}

/// Neighbours take from it, and VMs that do not show their sockets.
double socket_thread_speed(const Operation& op) {
  const auto host = contention_at(op.context, op.group.gpu, socket_threads(op.context, op.group.gpu));
  return host.core_speed / host.copy_slowdown / scattered_threads_factor(op.context, op.group.gpu);
}

namespace {

/// Streams that carry one message, and threads of one connection beside the proxy.
struct SocketUse {
  double streams = 1;
  double helpers = 0;
};

/// NCCL starts helper threads for adapters of some clouds (by PCI vendor, net_socket.cc) or as told, and cuts a message
/// into as many pieces as a connection has sockets, of 64 KiB at least. Without a helper the proxy sends by one socket.
SocketUse socket_use(const Hops& hops, const Steps& steps) {
  constexpr double k_most_sockets = 64;
  const auto& op = steps.op;
  const auto& software = op.context.software;
  const auto count = [&](const char* field, const std::optional<int>& given, double usual) {
    if (given) return static_cast<double>(*given);
    const auto* own = op.of_adapter(hops, field);
    return own == nullptr ? usual : own->value;
  };
  const double helpers = count("socket_threads", software.nccl_socket_nthreads, 0);
  const double sockets = count("sockets_per_thread", software.nccl_nsocks_perthread, 1);
  const double all = helpers == 0 ? 1 : std::min(helpers * sockets, std::floor(k_most_sockets / helpers) * helpers);
  const double pieces = std::ceil(steps.cut.chunk / op.share / op.context.parameters.at("nccl.socket_piece"_key).value);
  SocketUse use;
  use.streams = std::clamp(pieces, 1.0, all);
  use.helpers = std::min(helpers, use.streams);
  return use;
}

}  // namespace

/// Of the thread, whatever its bytes.
double socket_message_time(const Steps& steps) {
  const auto& op = steps.op;
  const auto& time = op.context.parameters.at("nccl.socket_message_time"_key);
  return (time.value + socket_data_time(steps) / 2) * scattered_threads_factor(op.context, op.group.gpu);
}

namespace {

/// Threads that both send and receive in every hop of a ring wait for others, the longer the more of them go round: 1 +
/// w (1 - 2/n). Two are in step. Own runs of 2, 4 and 8 ranks over sockets: 1, 1.11 and 1.17 times what the bytes alone
/// would take.
double ring_wait(const Operation& op) {
  if (op.choice.algorithm != Algorithm::ring || is_peer_to_peer(op.collective)) return 1;
  return 1 + op.context.parameters.at("nccl.socket_ring_wait"_key).value * (1 - 2.0 / std::max(2.0, op.num_ranks()));
}

/// The most that the thread of one process moves of a unit of the flow: what it does one way, in both directions less,
/// and the messages beside those that the hops have paid.
double thread_rate(const Hops& hops, const Steps& steps, double bytes) {
  const auto& op = steps.op;
  const auto& thread = op.context.parameters.at("nccl.socket_thread_bandwidth"_key);
  const double both_ways = op.context.parameters.at("nccl.socket_both_ways_cost"_key).value - 1;
  double uses = (hops.process_uses + both_ways * hops.process_both_ways) * hops.connection_units;
  if (op.group.num_ranks == op.group.num_hosts) uses *= ring_wait(op);
  const double copies = uses * bytes / (thread.value * socket_thread_speed(op));
  const double later = steps.algorithm.messages(steps.cut) - steps.algorithm.messages_of_hops(hops);
  const double connections = steps.cut.pair_channels / op.pattern.shares;
  return bytes / (copies + std::max(0.0, later) * hops.process_uses * connections * socket_message_time(steps));
}

}  // namespace

double loopback_speed(const Steps& steps) {
  const auto& op = steps.op;
  double helpers = 0;
  for (const auto& hops : op.pattern.hops)
    if (hops.kind == TransportKind::socket) helpers = std::max(helpers, socket_use(hops, steps).helpers);
  constexpr double k_useful_helpers = 2;
  const double gain = op.context.parameters.at("nccl.socket_helper_gain"_key).value;
  return socket_thread_speed(op) * (1 + gain * std::min(helpers, k_useful_helpers)) / ring_wait(op);
}

/// Other channels' messages are in the bytes: a message that waits for its end has the thread for itself. Not so in
/// trees of LL, whose bytes pass once: in a hop the messages that meet go one after the other. (Of Simple the slice
/// says what of it meets others.)
double slice_rate(const Flow& flow, const Hops& hops, const Steps& steps) {
  const auto& op = steps.op;
  const auto& thread = op.context.parameters.at("nccl.socket_thread_bandwidth"_key);
  if (hops.kind != TransportKind::socket || flow.cap_parameter != thread.name)
    return rate_alone(op.context.resources, flow);
  const bool is_queue = op.choice.algorithm == Algorithm::tree && !op.is(Protocol::simple);
  const double own = thread.value * socket_thread_speed(op) / (is_queue ? hops.process_meeting : 1);
  return std::max(rate_alone(op.context.resources, flow), std::min(own, rate_of_crossings(op.context.resources, flow)));
}

/// A connection moves no more than its streams, a process no more than its thread; thread blocks work meanwhile.
void limit_sockets(Flow& flow, const Steps& steps) {
  const auto& op = steps.op;
  const double before = rate_alone(op.context.resources, flow);
  const auto& thread = op.context.parameters.at("nccl.socket_thread_bandwidth"_key);
  const double helper = thread.value * socket_thread_speed(op);
  const double sent = flow.payload / op.share;
  for (const auto& hops : op.pattern.hops) {
    if (hops.kind != TransportKind::socket) continue;
    const auto use = socket_use(hops, steps);
    const double connections = std::max(1.0, steps.cut.pair_channels / op.pattern.shares) / hops.connection_units;
    const auto* own = op.of_adapter(hops, "connection_sustained_bandwidth");
    if (own == nullptr) own = op.of_adapter(hops, "connection_bandwidth");
    const auto& stream = own != nullptr ? *own : op.context.parameters.at("mpi.tcp.flow_bandwidth"_key);
    limit_rate(flow, stream.value * use.streams * connections, "TCP streams of one connection", stream.name);
    if (use.helpers > 0) {
      limit_rate(flow, helper * use.helpers * connections, "helper threads of one connection", thread.name);
    } else if (hops.process_uses > 0) {
      limit_rate(flow, thread_rate(hops, steps, sent), "one process's proxy thread", thread.name);
    }
  }
  hide_work_behind_limit(flow, steps, before);
}

}  // namespace fabricast::models::nccl
