// SPDX-License-Identifier: Apache-2.0
#include "mpi/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "guest/guest.hpp"

namespace fabricast::models::mpi {

namespace {

double capacity_of(const PlanContext& context, const Crossing& crossing) {
  return context.resources.capacity(crossing.resource) / crossing.times;
}

std::vector<Crossing> merged(std::vector<Crossing> crossings) {
  CrossingCounter counter;
  for (const auto& crossing : crossings) counter.add(crossing.resource, crossing.times);
  return counter.take();
}

double bottleneck(const PlanContext& context, const std::vector<Crossing>& crossings) {
  double rate = 1e18;
  for (const auto& crossing : merged(crossings)) rate = std::min(rate, capacity_of(context, crossing));
  return rate;
}

Term computed_term(std::string name, double seconds, std::string parameter, std::string source) {
  return {std::move(name), from_seconds(seconds), std::move(parameter), std::move(source)};
}

}  // namespace

std::string Transfers::field(const char* name) const { return fmt::format("mpi.{}.{}", profile_.name, name); }

Message Transfers::message(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow) const {
  if (from.host == to.host && is_same_system(context_, from.device(), to.device())) return within_host(from, to, size);
  return over_network(from, to, size, flow);
}

Duration Transfers::control_latency(const EndPoint& from, const EndPoint& to) const {
  EndPoint host_from = from;
  EndPoint host_to = to;
  host_from.gpu = host_to.gpu = DeviceId{};
  const auto control = message(host_from, host_to, Bytes{0});
  return sum(control.terms);
}

/// Shared memory, CUDA IPC over NVLink or PCIe, or copies through host memory, inside one host.
Message Transfers::within_host(const EndPoint& from, const EndPoint& to, Bytes size) const {
  Message out;
  const auto& topology = context_.topology;
  out.gap = profile_.message_gap;
  out.terms.push_back(term("MPI software, shared memory", "mpi.shared_memory.overhead"));
  out.protocol = "shared memory";
  out.flow.bytes = static_cast<double>(size.value);
  if (size.value == 0) return out;
  if (from.is_device() && to.is_device() && from.gpu == to.gpu) {
    out.terms.push_back(term("CUDA IPC handling", "mpi.cuda_ipc.overhead"));
    out.protocol = "cuda ipc, same GPU";
    const double memory = device_value(context_, from.gpu, "memory_bandwidth");
    out.flow.rate_cap = memory / 2;  // read and written in the same memory
    out.flow.cap_name = "GPU memory, read and write";
    out.flow.cap_parameter = topology.device(from.gpu).type + ".memory_bandwidth";
    return out;
  }
  if (from.is_device() || to.is_device()) out.gap = context_.parameters.duration("mpi.cuda_ipc.gap");
  Route route;
  if (from.is_device() && to.is_device()) {
    const auto path = topology.path_in_host(from.gpu, to.gpu);
    const auto gate = path && path->uses_nvlink ? nvlink_gate_of(context_, from.gpu) : pcie_gate_of(context_, from.gpu);
    const bool is_near =
        gate.is_open && path && (path->uses_nvlink || topology.distance(from.gpu, to.gpu) <= Distance::phb);
    if (context_.software.nccl_p2p && is_near) {
      out.terms.push_back(term("CUDA IPC handling", "mpi.cuda_ipc.overhead"));
      out.protocol = path->uses_nvlink ? "cuda ipc over NVLink" : "cuda ipc over PCIe";
      add_dma(context_, *path, false, route);
    } else {
      out.terms.push_back(term("copies to and from host memory", "cuda.copy_overhead", 2));
      out.protocol = "staged";
      out.reason = gate.is_open ? "no peer-to-peer path between the GPUs" : gate.reason;
      add_host_copy(context_, from.gpu, from.memory, true, route);
      add_host_copy(context_, to.gpu, from.memory, false, route);
    }
  } else if (from.is_device() || to.is_device()) {
    out.terms.push_back(term("copy between GPU and host memory", "cuda.copy_overhead"));
    out.protocol = "cuda copy";
    if (from.is_device()) {
      add_host_copy(context_, from.gpu, to.memory, true, route);
    } else {
      add_host_copy(context_, to.gpu, from.memory, false, route);
    }
  } else {
    if (size > profile_.eager_limit)
      out.terms.push_back(term("rendezvous inside the host", "mpi.shared_memory.rendezvous"));
    const auto& copy = context_.parameters.at("mpi.shared_memory.copy_bandwidth");
    out.flow.rate_cap = copy.value;
    out.flow.cap_name = "memory copy of one core";
    out.flow.cap_parameter = copy.name;
    const auto name = processor_of(topology, from.memory) + ".memory_bandwidth";
    if (const auto* memory = context_.parameters.find(name)) {
      route.crossings.push_back({context_.resources.extra(Limit::dram, from.memory, 2 * memory->value, name), 5});
    }
  }
  out.terms.push_back(
      computed_term("links inside the host", route.latency.seconds(), "topology", "link and forwarding latencies"));
  out.flow.crossings = merged(std::move(route.crossings));
  return out;
}

/// Why data of this end cannot move by GPUDirect RDMA; empty when it can.
std::string Transfers::why_not_direct(const EndPoint& end, DeviceId hca, Bytes size) const {
  if (!end.is_device()) return {};
  if (profile_.is_tcp) return "TCP cannot read GPU memory";
  const auto allowed = gpudirect_rdma(context_, end.gpu, hca, profile_.gpudirect_farthest);
  if (!allowed.is_allowed) return allowed.reason;
  if (size > profile_.gpudirect_limit) {
    return fmt::format("{} is above the GPUDirect limit of {}", to_string(size), to_string(profile_.gpudirect_limit));
  }
  return {};
}

Route Transfers::network_route(const EndPoint& from, const EndPoint& to, std::size_t rail, std::uint64_t flow,
                               bool direct_from, bool direct_to) const {
  const auto from_hca = from.hcas[rail % from.hcas.size()];
  const auto to_hca = to.hcas[rail % to.hcas.size()];
  Route route;
  route.kind = profile_.is_tcp ? TransportKind::socket : TransportKind::network;
  PathOptions pcie_only;
  pcie_only.may_use_nvlink = false;
  if (direct_from) {
    const auto path = context_.topology.path_in_host(from.gpu, from_hca, pcie_only);
    FABRICAST_ASSERT(path.has_value(), "no PCIe path from a GPU to its HCA");
    add_gpudirect(context_, from_hca, *path, true, route);
  } else {
    add_host_copy(context_, from_hca, from.memory, false, route);
  }
  add_fabric(context_, from_hca, to_hca, flow, route);
  if (direct_to) {
    const auto path = context_.topology.path_in_host(to_hca, to.gpu, pcie_only);
    FABRICAST_ASSERT(path.has_value(), "no PCIe path from an HCA to its GPU");
    add_gpudirect(context_, to_hca, *path, false, route);
  } else {
    add_host_copy(context_, to_hca, to.memory, true, route);
  }
  return route;
}

/// HCAs a message may be striped over: GPUDirect RDMA uses only those as near as the nearest.
std::size_t Transfers::usable_rails(const EndPoint& end, bool is_direct) const {
  if (!is_direct) return end.hcas.size();
  const auto nearest = context_.topology.distance(end.gpu, end.hcas.front());
  std::size_t count = 0;
  for (const auto hca : end.hcas) count += context_.topology.distance(end.gpu, hca) == nearest ? 1 : 0;
  return count;
}

/// The message moves without CPU copies of device data: host buffers, or GPUDirect RDMA on the device ends.
Message Transfers::host_or_direct(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow,
                                  bool direct_from, bool direct_to) const {
  Message out;
  const bool is_direct = direct_from || direct_to;
  const auto limit = is_direct ? profile_.device_copy_limit : profile_.eager_limit;
  const bool is_eager = size <= limit;
  const auto from_hca = from.hcas.front();
  const auto to_hca = to.hcas.front();
  out.protocol = fmt::format("{}{}", is_eager ? "eager" : "rendezvous", is_direct ? " gdr" : "");
  out.gap = is_eager ? (is_direct ? profile_.device_message_gap : profile_.message_gap) : profile_.rendezvous_gap;
  // Bounce buffers: the sender copies one message while the HCA sends the one before.
  const double bytes = static_cast<double>(size.value);
  const auto sender_copy = is_direct ? profile_.device_eager_copy : profile_.eager_gap_copy;
  if (is_eager && sender_copy.bytes_per_s > 0) out.gap += from_seconds(bytes / sender_copy.bytes_per_s);
  if (is_eager && size > profile_.inline_limit) out.gap += profile_.bounce_gap;
  out.gap = std::max(out.gap, virtual_message_gap(context_, from_hca));
  out.terms.push_back(term("MPI and driver software", field("overhead")));
  const double hca_latency =
      0.5 * (device_value(context_, from_hca, "latency") + device_value(context_, to_hca, "latency"));
  const auto hca_name = context_.topology.device(from_hca).type + ".latency";
  const auto* hca_parameter = context_.parameters.find(hca_name);
  out.terms.push_back(
      computed_term("HCA processing, both sides", hca_latency, hca_name, hca_parameter ? hca_parameter->source : ""));
  int rails = 1;
  if (!is_eager && size >= profile_.rail_minimum) {
    const auto usable = std::min(usable_rails(from, direct_from), usable_rails(to, direct_to));
    rails = std::clamp(profile_.max_rails, 1, static_cast<int>(usable));
  }
  const auto route = network_route(from, to, 0, flow, direct_from, direct_to);
  out.terms.push_back(
      computed_term("links and switches", route.latency.seconds(), "topology", "link and forwarding latencies"));
  out.terms.insert(out.terms.end(), route.guest_terms.begin(), route.guest_terms.end());
  if (size.value > 0 && is_direct) {
    const double ends = (direct_from ? 1 : 0) + (direct_to ? 1 : 0);
    out.terms.push_back(term("device buffer handling", field("device_overhead"), ends));
  }
  if (size > profile_.inline_limit)
    out.terms.push_back(term("DMA read of the data by the sending HCA", "verbs.dma_read_time"));
  if (!is_eager) {
    const double one_way =
        hca_latency + route.latency.seconds() + profile_.overhead.seconds() + sum(route.guest_terms).seconds();
    out.terms.push_back(computed_term("rendezvous control messages", profile_.rendezvous_messages * one_way,
                                      field("rendezvous_messages"),
                                      context_.parameters.at(field("rendezvous_messages")).source));
  } else if (!is_direct && profile_.eager_copy.bytes_per_s > 0 && size > profile_.inline_limit) {
    out.terms.push_back(computed_term(
        "copies through bounce buffers", 2 * static_cast<double>(size.value) / profile_.eager_copy.bytes_per_s,
        field("eager_copy_bandwidth"), context_.parameters.at(field("eager_copy_bandwidth")).source));
  }
  if (is_eager && is_direct && profile_.device_eager_copy.bytes_per_s > 0) {
    const auto& copy = context_.parameters.at(field("device_eager_copy_bandwidth"));
    out.terms.push_back(
        computed_term("copy of the device buffer into a bounce buffer", bytes / copy.value, copy.name, copy.source));
  }
  // The first packet pays every stage; the flow below pays the bottleneck stage for all bytes.
  const double mtu =
      std::min(device_value(context_, from_hca, "mtu"), static_cast<double>(context_.topology.spec().fabric.mtu));
  const double packet = std::min(static_cast<double>(size.value), mtu);
  const auto crossings = merged(route.crossings);
  double stages = 0;
  for (const auto& crossing : crossings) {
    if (!context_.resources.is_link(crossing.resource)) continue;
    const auto kind = context_.topology.link_kind(LinkId{crossing.resource});
    if (kind == LinkKind::pcie || kind == LinkKind::network) stages += packet / capacity_of(context_, crossing);
  }
  const double slowest = packet / bottleneck(context_, route.crossings);
  out.terms.push_back(computed_term("first packet through every stage", std::max(0.0, stages - slowest),
                                    "verbs.store_and_forward", "first packet crosses each PCIe link and wire in turn"));
  out.flow.bytes = static_cast<double>(size.value) / rails;
  auto all = route.crossings;
  out.flow.legs = route.legs;
  for (int rail = 1; rail < rails; ++rail) {
    const auto more = network_route(from, to, static_cast<std::size_t>(rail), flow, direct_from, direct_to);
    all.insert(all.end(), more.crossings.begin(), more.crossings.end());
    add_legs(more, 1, out.flow.legs);
  }
  out.flow.crossings = merged(std::move(all));
  if (profile_.flow_bandwidth.bytes_per_s > 0) {
    out.flow.rate_cap = profile_.flow_bandwidth.bytes_per_s;
    out.flow.cap_name = "one connection";
    out.flow.cap_parameter = field("flow_bandwidth");
  }
  return out;
}

/// A small device message copied by the CPU to or from a host bounce buffer.
void Transfers::add_bounce_copy(Message& message, const EndPoint& end, Bytes size, bool is_sender) const {
  const double bytes = static_cast<double>(size.value);
  const auto& read = context_.parameters.at("gdrcopy.read_bandwidth");
  const auto& write = context_.parameters.at("gdrcopy.write_bandwidth");
  const auto& start = context_.parameters.at(is_sender ? "gdrcopy.read_time" : "gdrcopy.write_time");
  const double by_gdrcopy = start.value + bytes / (is_sender ? read.value : write.value);
  const auto& copy = context_.parameters.at("cuda.copy_overhead");
  const double by_cuda = copy.value;
  const auto& name = context_.topology.device(end.gpu).name;
  if (profile_.uses_gdrcopy && by_gdrcopy <= by_cuda + bytes / 1e10) {
    message.terms.push_back(computed_term(fmt::format("gdrcopy {} {}", is_sender ? "from" : "to", name), by_gdrcopy,
                                          start.name, start.source));
  } else {
    message.terms.push_back(computed_term(fmt::format("CUDA copy {} {}", is_sender ? "from" : "to", name), by_cuda,
                                          copy.name, copy.source));
  }
}

/// Device data goes through host memory in chunks: copy out, send, copy in, overlapping.
Message Transfers::staged(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow,
                          std::string reason) const {
  EndPoint host_from = from;
  EndPoint host_to = to;
  host_from.gpu = host_to.gpu = DeviceId{};
  const Bytes chunk{std::min(size.value, profile_.staging_chunk.value)};
  auto out = host_or_direct(host_from, host_to, chunk, flow, false, false);
  out.reason = std::move(reason);
  out.protocol = "staged";
  std::vector<Crossing> crossings;
  double copy_seconds = 0;
  double slowest_copy = 1e18;
  const auto add_end = [&](const EndPoint& end, bool is_sender) {
    if (!end.is_device()) return;
    Route route;
    add_host_copy(context_, end.gpu, end.memory, is_sender, route);
    const double rate = bottleneck(context_, route.crossings);
    slowest_copy = std::min(slowest_copy, rate);
    copy_seconds += static_cast<double>(chunk.value) / rate;
    crossings.insert(crossings.end(), route.crossings.begin(), route.crossings.end());
    add_bounce_copy(out, end, chunk, is_sender);
  };
  add_end(from, true);
  add_end(to, false);
  if (size.value > chunk.value) {
    out.terms.push_back(computed_term("copying the first chunk out and in", copy_seconds, field("staging_chunk"),
                                      context_.parameters.at(field("staging_chunk")).source));
    const auto& per_chunk = context_.parameters.at("cuda.chunk_overhead");
    const double chunks = std::ceil(static_cast<double>(size.value) / static_cast<double>(chunk.value));
    out.terms.push_back(computed_term(fmt::format("{:.0f} staging chunks", chunks), (chunks - 1) * per_chunk.value,
                                      per_chunk.name, per_chunk.source));
  }
  for (const auto& crossing : out.flow.crossings) crossings.push_back(crossing);
  // The chunk's own bytes are in the flow for all chunks together; stages overlap, so the slowest stage counts.
  out.flow.crossings = merged(std::move(crossings));
  out.flow.bytes =
      static_cast<double>(size.value) * (out.flow.bytes > 0 ? out.flow.bytes / static_cast<double>(chunk.value) : 1.0);
  // A message of one chunk is copied while the sender waits; more chunks are queued and overlap.
  const bool is_one_chunk = size <= profile_.staging_chunk;
  out.gap = is_one_chunk ? context_.parameters.duration("cuda.copy_overhead") : profile_.rendezvous_gap;
  return out;
}

Message Transfers::over_network(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow) const {
  if (size.value == 0 || (!from.is_device() && !to.is_device())) {
    EndPoint host_from = from;
    EndPoint host_to = to;
    host_from.gpu = host_to.gpu = DeviceId{};
    return host_or_direct(host_from, host_to, size, flow, false, false);
  }
  const auto from_reason = why_not_direct(from, from.hcas.front(), size);
  const auto to_reason = why_not_direct(to, to.hcas.front(), size);
  if (!from_reason.empty() || !to_reason.empty())
    return staged(from, to, size, flow, from_reason.empty() ? to_reason : from_reason);
  return host_or_direct(from, to, size, flow, from.is_device(), to.is_device());
}

}  // namespace fabricast::models::mpi
