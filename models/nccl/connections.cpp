// SPDX-License-Identifier: Apache-2.0
#include "nccl/connections.hpp"

#include "paths/guest.hpp"

namespace fabricast::models::nccl {

namespace {

std::uint64_t pair_key(DeviceId a, DeviceId b) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(a.value)) << 32) | static_cast<std::uint32_t>(b.value);
}

}  // namespace

bool is_link_of(const Resources& resources, const Crossing& crossing, LinkKind kind) {
  return resources.is_link(crossing.resource) && resources.topology().link_kind(LinkId{crossing.resource}) == kind;
}

Connections::Connections(const PlanContext& context, Buffers buffers, const std::vector<HostGroup>& hosts)
    : context_(context), buffers_(buffers) {
  for (const auto& host : hosts) gpus_of_host_[host.host] = static_cast<int>(host.gpus.size());
}

Sending Connections::sending(DeviceId gpu) const {
  return {buffers_, gpus_of_host_.at(context_.topology.host_of(gpu))};
}

const Route& Connections::in_host(DeviceId from, DeviceId to) {
  const auto [it, is_new] = in_host_.try_emplace(pair_key(from, to));
  if (is_new) it->second = route_in_host(context_, from, to, sending(from).gpus_of_host);
  return it->second;
}

bool Connections::is_tcp(DeviceId hca) {
  const auto [it, is_new] = is_tcp_.try_emplace(hca.value);
  if (is_new) it->second = uses_tcp(context_, hca);
  return it->second;
}

Connections::End& Connections::end_of(const NetworkEnd& end, bool is_sender) {
  auto& ends = ends_[pair_key(end.gpu, end.hca)];
  for (auto& known : ends) {
    if (known.sender == end.sender && known.is_sender == is_sender) return known;
  }
  ends.push_back({end.sender, is_sender});
  return ends.back();
}

/// In the order in which bytes pass, so that limits get their numbers in that order.
void Connections::meet(const NetworkEnd& from, const NetworkEnd& to, End& out, End& in) {
  if (!out.is_known)
    out.segment =
        sender_segment(context_, from.gpu, from.sender.value < 0 ? from.gpu : from.sender, from.hca, sending(from.gpu));
  const auto port = [&](const NetworkEnd& end, End& into, bool is_sender) {
    into.latency_s = half_latency_s(context_, end.hca);
    into.payload = payload_crossing(context_, end.hca, is_sender);
  };
  if (!out.is_known) port(from, out, true);
  if (!in.is_known) port(to, in, false);
  if (!out.is_known) add_virtual_port(context_, from.hca, true, from.gpu, out.port);
  if (!in.is_known) {
    add_virtual_port(context_, to.hca, false, to.gpu, in.port);
    in.segment = receiver_segment(context_, to.hca, to.gpu);
  }
  out.is_known = in.is_known = true;
}

Route Connections::between_hosts(const NetworkEnd& from, const NetworkEnd& to, std::uint64_t flow) {
  if (is_tcp(from.hca) || is_tcp(to.hca)) return socket_route(context_, from.gpu, to.gpu, from.hca, to.hca, flow);
  if (can_stay_inside_host(context_, from.hca, to.hca)) {
    auto route =
        sender_segment(context_, from.gpu, from.sender.value < 0 ? from.gpu : from.sender, from.hca, sending(from.gpu));
    add_fabric(context_, from.hca, to.hca, flow, route, from.gpu, to.gpu);
    append(route, receiver_segment(context_, to.hca, to.gpu));
    return route;
  }
  auto& out = end_of(from, true);
  auto& in = end_of(to, false);
  if (!out.is_known || !in.is_known) meet(from, to, out, in);
  auto route = out.segment;
  add_wire(context_, from.hca, to.hca, flow, route);
  if (context_.with_legs) route.legs.push_back({from.hca, to.hca, flow + context_.seed, 1, false});
  route.adapter_latency += from_seconds(out.latency_s + in.latency_s);
  route.crossings.push_back(out.payload);
  route.crossings.push_back(in.payload);
  append(route, out.port);
  append(route, in.port);
  append(route, in.segment);
  return route;
}

}  // namespace fabricast::models::nccl
