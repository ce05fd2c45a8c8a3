// SPDX-License-Identifier: Apache-2.0
#include "paths/transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "fabricast/gpudirect_software.hpp"
#include "fabricast/models/payload.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"

namespace fabricast::models {

std::string_view to_string(TransportKind kind) {
  switch (kind) {
    case TransportKind::nvlink:
      return "nvlink";
    case TransportKind::pcie:
      return "pcie";
    case TransportKind::host_memory:
      return "shm";
    case TransportKind::network:
      return "network";
    case TransportKind::network_staged:
      return "network_staged";
    case TransportKind::socket:
      return "socket";
  }
  return "";
}

const std::string& processor_of(const Topology& topology, DeviceId device) {
  return topology.host_spec(topology.host_of(device)).processor;
}

bool is_amd(const Topology& topology, DeviceId device) {
  return topology.attribute(processor_of(topology, device), "vendor") == "amd";
}

bool is_x86(const Topology& topology, DeviceId device) {
  return topology.attribute(processor_of(topology, device), "vendor") != "nvidia";
}

const Parameter& of_processor(const PlanContext& context, DeviceId device, std::string_view field,
                              const std::string& usual) {
  return context.parameters.first_of({fmt::format("{}.{}", processor_of(context.topology, device), field), usual});
}

double device_value(const PlanContext& context, DeviceId device, std::string_view field) {
  return context.parameters.number(fmt::format("{}.{}", context.topology.device(device).type, field));
}

double device_value_or(const PlanContext& context, DeviceId device, std::string_view field, double fallback) {
  return context.parameters.value_or(context.topology.device(device).type, field, fallback);
}

int compute_capability(const PlanContext& context, DeviceId gpu) {
  return static_cast<int>(device_value(context, gpu, "compute_capability"));
}

std::string_view provider_of(const PlanContext& context, DeviceId hca) {
  if (hca.value < 0) return {};
  const auto& type = context.topology.device(hca).type;
  const auto named = context.topology.attribute(type, "libfabric");
  return named.empty() && context.topology.attribute(type, "protocol") == "efa" ? std::string_view("efa") : named;
}

Access access_of(const PlanContext& context, DeviceId hca) {
  const auto& topology = context.topology;
  const auto& type = topology.device(hca).type;
  if (device_value_or(context, hca, "rdma", 1) == 0 || topology.attribute(type, "nccl_plugin") == "tcpxo")
    return Access::tcp;
  const bool is_cray = provider_of(context, hca) == "cxi" || topology.attribute(type, "protocol") == "aries";
  return is_cray ? Access::libfabric : Access::verbs;
}

bool uses_tcp(const PlanContext& context, DeviceId hca) {
  if (context.software.transport == "tcp" || is_tcp_only(nic_mode_of(context, hca))) return true;
  return context.software.transport == "auto" && device_value_or(context, hca, "rdma", 1) == 0;
}

void append(Route& route, const Route& next) {
  route.crossings.insert(route.crossings.end(), next.crossings.begin(), next.crossings.end());
  route.latency += next.latency;
  route.whole_packet_wait += next.whole_packet_wait;
  route.adapter_latency += next.adapter_latency;
  route.lands_in_gpu = route.lands_in_gpu || next.lands_in_gpu;
  route.pcie_switch_hops += next.pcie_switch_hops;
  route.socket_crossings += next.socket_crossings;
  route.guest_terms.insert(route.guest_terms.end(), next.guest_terms.begin(), next.guest_terms.end());
  if (next.kind == TransportKind::network_staged) route.kind = TransportKind::network_staged;
  add_legs(next, 1, route.legs);
}

void add_legs(const Route& route, int times, std::vector<Leg>& legs) {
  for (auto leg : route.legs) {
    leg.times *= times;
    legs.push_back(leg);
  }
}

std::vector<Leg> merged_legs(std::vector<Leg> legs) {
  const auto place = [](const Leg& leg) { return std::tuple(leg.from, leg.to, leg.flow); };
  std::sort(legs.begin(), legs.end());
  std::vector<Leg> out;
  for (const auto& leg : legs) {
    if (!out.empty() && place(out.back()) == place(leg)) {
      out.back().times += leg.times;
    } else {
      out.push_back(leg);
    }
  }
  return out;
}

namespace {

/// Peer requests that the root complexes of the socket translate share what the socket can translate, beside the
/// processor's limits for peer traffic; nothing where none is translated or the processor has no such figure.
void add_translation(const PlanContext& context, const Path& path, bool is_read, Route& route) {
  const auto from = context.topology.link(path.links.front()).from;
  const auto& guest = guest_settings(context, from);
  const bool is_translated = guest.is_virtual() && guest.translation == PeerTranslation::shared;
  if (path.uses_nvlink || (!guest.redirects_peers() && !is_translated)) return;
  if (guest.is_virtual())
    route.guest_terms.push_back(parameter_term(context.parameters,
                                               "virtualization: peer requests translated by the root complex",
                                               "virtualization.translation_time"_key));
  const auto name = fmt::format("{}.translated_peer_bandwidth", processor_of(context.topology, from));
  const auto* limit = context.parameters.find(name);
  if (limit == nullptr) return;
  const auto device = context.topology.device(from);
  const auto socket = context.topology.device_in_host(device.host, DeviceKind::socket, std::max(0, device.socket));
  const auto kind = is_read ? Limit::translation : Limit::translation_write;
  route.crossings.push_back({context.resources.extra(kind, socket, limit->value, name), 1});
}

}  // namespace

void add_dma(const PlanContext& context, const Path& path, bool is_read, Route& route) {
  for (const auto link : path.links) route.crossings.push_back({link.value, 1});
  route.latency += path.latency;
  route.pcie_switch_hops += path.pcie_switch_hops;
  route.socket_crossings += path.socket_crossings;
  if (path.links.empty()) return;
  add_translation(context, path, is_read, route);
  // What a GPU on NVLink-C2C has is memory of its processor to others, no peer.
  const auto is_memory = [&](DeviceId end) { return has_c2c(context.topology, end); };
  const bool is_of_c2c = is_memory(context.topology.link(path.links.front()).from) ||
                         is_memory(context.topology.link(path.links.back()).to);
  for (const auto& crossing : path.peer_crossings) {
    if (is_of_c2c && !crossing.is_cross_socket) continue;
    const bool cross = crossing.is_cross_socket;
    const auto name =
        fmt::format("{}.p2p_{}{}_bandwidth", crossing.processor, cross ? "cross_" : "", is_read ? "read" : "write");
    const auto* limit = context.parameters.find(name);
    if (limit == nullptr) continue;
    const auto kind = cross ? (is_read ? Limit::peer_cross_read : Limit::peer_cross_write)
                            : (is_read ? Limit::peer_read : Limit::peer_write);
    route.crossings.push_back({context.resources.extra(kind, crossing.root_complex, limit->value, name), 1});
  }
}

void add_gpudirect(const PlanContext& context, DeviceId hca, const Path& path, bool is_read, Route& route) {
  add_dma(context, path, is_read, route);
  const auto name = context.topology.device(hca).type + ".gpudirect_read_bandwidth";
  const auto* limit = context.parameters.find(name);
  if (is_read && limit != nullptr)
    route.crossings.push_back({context.resources.extra(Limit::gpudirect_read, hca, limit->value, name), 1});
  if (!is_read || !guest_settings(context, hca).redirects_peers()) return;
  const auto redirected = processor_of(context.topology, hca) + ".redirected_adapter_bandwidth";
  if (const auto* most = context.parameters.find(redirected))
    route.crossings.push_back({context.resources.extra(Limit::redirected_read, hca, most->value, redirected), 1});
}

void add_host_copy(const PlanContext& context, DeviceId device, DeviceId memory, bool to_memory, Route& route) {
  const auto path =
      to_memory ? context.topology.path_in_host(device, memory) : context.topology.path_in_host(memory, device);
  FABRICAST_ASSERT(path.has_value(), "no path between a device and its host memory");
  for (const auto link : path->links) route.crossings.push_back({link.value, 1});
  route.latency += path->latency;
  route.socket_crossings += path->socket_crossings;
  add_dram(context, memory, to_memory ? 3 : 2, route);
}

// DRAM is half duplex: reads and writes share it. Writing costs 1.5 times reading (write turnaround and read for
// ownership), counted as 3 and 2 of a capacity of twice the read bandwidth.
void add_dram(const PlanContext& context, DeviceId memory, int times, Route& route) {
  const auto name = processor_of(context.topology, memory) + ".memory_bandwidth";
  const auto* bandwidth = context.parameters.find(name);
  if (bandwidth == nullptr) return;
  const double left = 2 * bandwidth->value * contention_at(context, memory, 1).memory_share_left;
  route.crossings.push_back({context.resources.extra(Limit::dram, memory, left, name), times});
}

bool is_peer_path(const PlanContext& context, DeviceId from, DeviceId to, const Path& path) {
  return path.uses_nvlink || context.topology.distance(from, to) <= Distance::node;
}

double add_staged_copy(const PlanContext& context, DeviceId from, DeviceId to, DeviceId memory, Route& route) {
  const auto& topology = context.topology;
  const auto out = topology.path_in_host(from, memory);
  const auto in = topology.path_in_host(memory, to);
  FABRICAST_ASSERT(out.has_value() && in.has_value(), "no path between a GPU and host memory");
  add_host_copy(context, from, memory, true, route);
  add_host_copy(context, to, memory, false, route);
  const auto direct = topology.path_in_host(from, to);
  if (direct && !direct->uses_nvlink && is_peer_path(context, from, to, *direct)) {
    Route peer;
    add_dma(context, *direct, false, peer);
    for (const auto& crossing : peer.crossings)
      if (!context.resources.is_link(crossing.resource)) route.crossings.push_back(crossing);
  }
  const double slower = std::min(topology.link_bandwidth(out->links.front()).bytes_per_s,
                                 topology.link_bandwidth(in->links.back()).bytes_per_s);
  return context.parameters["cuda.staged_copy_share"_key] * slower;
}

namespace {

Limit limit_of(const SharedLinks& shared) {
  switch (shared.over) {
    case SpreadOver::router:
      return shared.is_out ? Limit::local_out : Limit::local_in;
    case SpreadOver::group:
      return shared.is_out ? Limit::global_out : Limit::global_in;
    case SpreadOver::leaf:
      return shared.is_out ? Limit::leaf_up : Limit::leaf_down;
    case SpreadOver::pod:
      return shared.is_out ? Limit::pod_up : Limit::pod_down;
  }
  return Limit::local_out;
}

}  // namespace

void add_network_link(Resources& resources, LinkId link, int times, std::vector<Crossing>& crossings) {
  const auto spread = resources.topology().spread_of(link);
  if (!spread) {
    crossings.push_back({link.value, times});
    return;
  }
  for (const auto* shared : {spread->out, spread->in})
    if (shared != nullptr)
      crossings.push_back({resources.together(limit_of(*shared), shared->at, shared->links), times});
}

void add_wire(const PlanContext& context, DeviceId from_hca, DeviceId to_hca, std::uint64_t flow, Route& route) {
  const auto path = context.topology.path_between_hcas(from_hca, to_hca, flow + context.seed);
  if (!path) {
    throw NoRoute(fmt::format("no network path from HCA '{}' to HCA '{}'", context.topology.device(from_hca).name,
                              context.topology.device(to_hca).name));
  }
  for (const auto link : path->links) add_network_link(context.resources, link, 1, route.crossings);
  route.latency += path->latency;
  route.whole_packet_wait += whole_packet_wait(context.topology, path->links);
}

Term whole_packet_term(const PlanContext& context, const Route& route, DeviceId from_hca, double bytes) {
  const double frame = route.whole_packet_wait > 0 ? first_frame(context.topology, context.parameters,
                                                                 context.topology.device(from_hca).type, bytes)
                                                   : 0;
  return {"first packet whole at switches to faster links", from_seconds(route.whole_packet_wait * frame), "topology",
          "switches cut through to ports no faster than the one a packet comes in by"};
}

double half_latency_s(const PlanContext& context, DeviceId hca) { return 0.5 * device_value(context, hca, "latency"); }

Crossing payload_crossing(const PlanContext& context, DeviceId hca, bool is_sender) {
  const auto type = context.topology.device(hca).type;  // once: it is asked of every rank
  const double by_headers = payload_share(context.topology, context.parameters, type);
  const auto* seen = context.parameters.find(type + ".payload_efficiency");
  const bool is_seen = seen != nullptr && seen->value < by_headers;
  const auto kind = is_sender ? Limit::hca_transmit : Limit::hca_receive;
  const double rate = context.parameters.number(type + ".rate");
  return {context.resources.extra(kind, hca, rate * (is_seen ? seen->value : by_headers),
                                  type + (is_seen ? ".payload_efficiency" : ".packet_header")),
          1};
}

void add_fabric(const PlanContext& context, DeviceId from_hca, DeviceId to_hca, std::uint64_t flow, Route& route,
                DeviceId from_user, DeviceId to_user) {
  if (add_inside_host(context, from_hca, to_hca, route, from_user, to_user)) return;
  const bool is_loopback = from_hca == to_hca;  // a message to itself turns round inside the adapter
  if (!is_loopback) add_wire(context, from_hca, to_hca, flow, route);
  if (context.with_legs && !is_loopback)
    route.legs.push_back({from_hca, to_hca, flow + context.seed, 1, uses_tcp(context, from_hca)});
  route.adapter_latency += from_seconds(half_latency_s(context, from_hca) + half_latency_s(context, to_hca));
  route.crossings.push_back(payload_crossing(context, from_hca, true));
  route.crossings.push_back(payload_crossing(context, to_hca, false));
  add_virtual_ports(context, from_hca, to_hca, route, from_user, to_user);
}

std::optional<OldSoftware> old_for_gpudirect(const PlanContext& context, DeviceId hca) {
  const auto& software = context.software;
  const bool is_open_mpi = software.mpi.empty() || software.mpi.starts_with("open-mpi");
  return too_old_for_gpudirect(context.parameters,
                               {software.cuda_version, is_open_mpi ? software.mpi_version : "", software.ofed_version},
                               context.topology.device(hca).type);
}

namespace {

std::string old_software(const PlanContext& context, DeviceId hca) {
  const auto old = old_for_gpudirect(context, hca);
  if (!old) return {};
  const auto over = old->key == "ofed" ? fmt::format(" over a {}", context.topology.device(hca).type) : std::string();
  return fmt::format("GPUDirect RDMA{} needs {} {}, this is {}", over, old->what, old->floor, old->version);
}

}  // namespace

GpuDirect gpudirect_rdma(const PlanContext& context, DeviceId gpu, DeviceId hca, Distance farthest) {
  if (!context.software.gpudirect_rdma) return {false, "GPUDirect RDMA is switched off"};
  if (!context.software.nv_peer_mem) return {false, "nv_peer_mem is not loaded"};
  if (auto old = old_software(context, hca); !old.empty()) return {false, std::move(old)};
  if (const auto gate = gpudirect_gate_of(context, gpu, hca); !gate.is_open) return {false, gate.reason};
  const auto distance = context.topology.distance(gpu, hca);
  if (distance > farthest) {
    return {false,
            fmt::format("{} and {} are {} apart{}, GPUDirect RDMA is used up to {}", context.topology.device(gpu).name,
                        context.topology.device(hca).name, to_string(distance),
                        guest_settings(context, gpu).guest_topology == GuestTopology::hidden
                            ? " where the guest does not see the PCIe tree (guest_topology: hidden)"
                            : "",
                        to_string(farthest))};
  }
  return {true, {}};
}

}  // namespace fabricast::models
