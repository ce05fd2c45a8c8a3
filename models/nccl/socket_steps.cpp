// SPDX-License-Identifier: Apache-2.0
// NCCL's socket transport: one thread per GPU, its proxy, sends and receives what all channels of that GPU exchange,
// and copies it through the kernel; each connection is one TCP stream, which one core of the receiver takes in. Helper
// threads, where NCCL starts them, take the copies over. Equations: docs/MODELS.md, NCCL over sockets between hosts.
#include <algorithm>
#include <cmath>

#include "nccl/step_shape.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

bool StepCosts::is_loopback(TransportKind kind) const { return kind == TransportKind::socket && is_.num_hosts == 1; }

/// A short message travels in NCCL's header, a longer one behind it: one more pass of the kernel on both sides.
double StepCosts::socket_data_time(const Shape& shape) const {
  const auto& parameters = context_.parameters;
  const bool is_inline = shape.chunk / shape.share <= parameters.number("nccl.socket_inline");
  return is_inline ? 0.0 : parameters.number("nccl.socket_data_time");
}

/// What the processor leaves to host threads: neighbours, and VMs that do not show their sockets.
double StepCosts::thread_speed() const {
  const auto host = contention_at(context_, is_.gpu, socket_threads(context_, is_.gpu));
  return host.core_speed / host.copy_slowdown / scattered_threads_factor(context_, is_.gpu);
}

/// What the thread of the busiest process spends on the messages of a step beside the first one: over loopback each
/// sends and receives one message per channel in a hop's time, so a message takes half of it.
double StepCosts::socket_queue_time(const Hops& hops, const Shape& shape) const {
  if (hops.kind != TransportKind::socket || is_.num_hosts == 1) return 0;
  const double both_ways = context_.parameters.number("nccl.hop_time.ring.ll.loopback") + socket_data_time(shape);
  double messages = hops.process_uses;
  // Short pieces to a peer go by fewer channels than it has (pairs).
  if (shape.is_pairs) messages *= std::min(1.0, shape.pair_channels / shape.pattern.shares);
  return std::max(0.0, messages - 1) / 2 * both_ways * scattered_threads_factor(context_, is_.gpu);
}

/// Streams that carry a message, and helper threads that copy: NCCL starts them for adapters of some clouds (by PCI
/// vendor, net_socket.cc) and cuts a message into as many pieces as a connection has sockets, of 64 KiB at least.
StepCosts::SocketUse StepCosts::socket_use(const Hops& hops, const Shape& shape) const {
  const auto* threads = of_adapter(hops, "socket_threads");
  const auto* sockets = of_adapter(hops, "sockets_per_thread");
  const double helpers = threads == nullptr ? 0 : threads->value;
  const double all = std::max(1.0, helpers) * (sockets == nullptr ? 1 : sockets->value);
  const double pieces = std::ceil(shape.chunk / shape.share / context_.parameters.number("nccl.socket_piece"));
  SocketUse use;
  use.streams = std::clamp(pieces, 1.0, all);
  use.helpers = std::min(helpers, use.streams);
  return use;
}

/// A connection moves no more than its streams, a process no more than its thread; thread blocks work meanwhile.
void StepCosts::limit_sockets(Flow& flow, const Shape& shape) const {
  const double before = rate_alone(context_.resources, flow);
  const auto limit_by = [&](double rate, const char* name, const std::string& parameter_name) {
    if (rate >= flow.rate_cap) return;
    flow.rate_cap = rate;
    flow.cap_name = name;
    flow.cap_parameter = parameter_name;
  };
  // A thread that sends and receives two channels: four streams of bytes pass it.
  const auto& channel = context_.parameters.at("nccl.loopback_channel_bandwidth");
  const double thread = 4 * channel.value * thread_speed();
  for (const auto& hops : shape.pattern.hops) {
    if (hops.kind != TransportKind::socket) continue;
    const auto use = socket_use(hops, shape);
    const double connections = shape.is_pairs ? std::max(1.0, shape.pair_channels / shape.pattern.shares) : 1;
    const auto* own = of_adapter(hops, "connection_sustained_bandwidth");
    if (own == nullptr) own = of_adapter(hops, "connection_bandwidth");
    const auto& stream = own != nullptr ? *own : context_.parameters.at("mpi.tcp.flow_bandwidth");
    limit_by(stream.value * use.streams * connections, "TCP streams of one connection", stream.name);
    if (use.helpers > 0) {
      limit_by(thread * use.helpers * connections, "helper threads of one connection", channel.name);
    } else if (hops.process_uses > 0) {
      limit_by(thread / hops.process_uses, "one process's proxy thread", channel.name);
    }
  }
  const double sent = flow.payload / shape.share;
  if (flow.rate_cap < before) flow.bytes = std::max(std::min(sent, flow.bytes), flow.bytes * flow.rate_cap / before);
}

}  // namespace fabricast::models::nccl
