// SPDX-License-Identifier: Apache-2.0
#include "mpi/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "mpi/efa_windows.hpp"
#include "mpi/flow_rates.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

Message Transfers::message(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow,
                           bool is_kept) const {
  const bool has_shared_memory = !profile_.posts_verbs && from.host == to.host;
  if (has_shared_memory && is_same_system(context_, from.user(), to.user()))
    return within_host(from, to, size, is_kept || profile_.keeps_buffers);
  return over_network(from, to, size, flow);
}

Duration Transfers::control_latency(const EndPoint& from, const EndPoint& to) const {
  return sum(message(from.in_host_memory(), to.in_host_memory(), Bytes{0}).terms);
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

GivenUsed Transfers::gpudirect_setting(const std::vector<EndPoint>& ends) const {
  const auto& limit = context_.software.gpudirect_limit;
  const auto usual = to_string(profile_.gpudirect_limit);
  GivenUsed out{"GPUDirect RDMA up to", limit ? to_string(*limit) : "default", usual, ""};
  int devices = 0;
  int never = 0;
  for (const auto& end : ends) {
    if (!end.is_device() || end.hcas.empty()) continue;
    ++devices;
    const auto why = why_not_direct(end, end.hcas.front(), Bytes{0});
    if (why.empty()) continue;
    ++never;
    if (out.reason.empty()) out.reason = why;
  }
  if (never > 0)
    out.used = never == devices ? "never" : fmt::format("{}, never of {} of {} GPUs", usual, never, devices);
  return out;
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
  add_fabric(context_, from_hca, to_hca, flow, route, from.user(), to.user());
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
  const auto seen_from = profile_.compares_gpus ? end.gpu : end.memory;
  const auto nearest = context_.topology.distance(seen_from, end.hcas.front());
  std::size_t count = 0;
  for (const auto hca : end.hcas) count += context_.topology.distance(seen_from, hca) == nearest ? 1 : 0;
  return count;
}

/// The message moves without CPU copies of device data: host buffers, or GPUDirect RDMA on the device ends.
Message Transfers::host_or_direct(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow,
                                  bool direct_from, bool direct_to) const {
  Message out;
  const bool is_direct = direct_from || direct_to;
  // Over TCP all data of GPUs are staged, by the protocol of their size.
  const bool is_of_gpu = from.staged_gpu.value >= 0 || to.staged_gpu.value >= 0;
  const auto limit = is_direct || (profile_.is_tcp && is_of_gpu) ? profile_.device_eager_limit : profile_.eager_limit;
  const bool is_eager = size <= limit;
  const auto from_hca = from.hcas.front();
  const auto to_hca = to.hcas.front();
  const EfaAnnounced efa(context_, profile_, from_hca, to_hca, size, is_direct);
  out.protocol = fmt::format("{}{}", is_eager ? "eager" : "rendezvous", is_direct ? " gdr" : "");
  out.is_rendezvous = !is_eager;
  set_gaps(out, from, to, size, is_eager, direct_from, direct_to);
  out.terms.push_back(term("MPI and driver software", own<"mpi.{}.overhead">()));
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
  const bool copies = is_eager && is_direct && copies_by_adapter(context_, profile_, to_hca);
  for (const auto* end : {&from, &to})
    if (end->is_device()) add_device_handling(out, *end, is_eager && !copies);
  if (copies && direct_to)
    out.terms.push_back(term("copied to the GPU by the adapter",
                             context_.parameters
                                 .first_of({context_.topology.device(to_hca).type + ".libfabric_receive_copy_time",
                                            own<"mpi.{}.device_overhead">()})
                                 .name));
  if (!is_inline(size, direct_from)) {
    out.terms.push_back(term("DMA read of the data by the sending HCA", "verbs.dma_read_time"_key));
  } else if (profile_.inline_copy.bytes_per_s > 0 && size.value > 0) {
    const auto& rate = context_.parameters.at(own<"mpi.{}.inline_copy_bandwidth">());
    out.terms.push_back(computed_term("data written into the work request",
                                      static_cast<double>(size.value) / rate.value, rate.name, rate.source));
  }
  const bool is_granted = !is_eager && efa.grants() > 0;
  const double software = profile_.has_adapter_rendezvous ? 0 : profile_.overhead.seconds();
  const double one_way = hca_latency + route.latency.seconds() + software + sum(route.guest_terms).seconds();
  if (!is_eager && !is_granted) {
    out.terms.push_back(computed_term("rendezvous control messages", profile_.rendezvous_messages * one_way,
                                      own<"mpi.{}.rendezvous_messages">(),
                                      context_.parameters.at(own<"mpi.{}.rendezvous_messages">()).source));
    if (is_direct) {
      const auto age = profile_.reads_by_gdrcopy ? own<"mpi.{}.device_rendezvous_overhead.ucx1.7">()
                                                 : own<"mpi.{}.device_rendezvous_overhead">();
      out.terms.push_back(term("rendezvous of device buffers", age));
    }
  }
  out.round_trip = 2 * from_seconds(hca_latency + route.latency.seconds());
  if (is_eager && profile_.is_acknowledged && size > profile_.inline_limit)
    out.acknowledgement = from_seconds(hca_latency + route.latency.seconds());
  // The first packet pays every stage; the flow below pays the bottleneck stage for all bytes.
  const double mtu =
      packet_payload(context_.topology.spec().fabric, context_.parameters, context_.topology.device(from_hca).type);
  const double packet = std::min(static_cast<double>(size.value), mtu);
  const auto crossings = merged(route.crossings);
  double stages = 0;
  double wires = 0;
  double slowest_wire = 0;
  for (const auto& crossing : crossings) {
    if (!context_.resources.is_link(crossing.resource)) continue;
    const auto kind = context_.topology.link_kind(LinkId{crossing.resource});
    const double stage = packet / capacity_of(context_, crossing);
    if (kind == LinkKind::pcie || kind == LinkKind::network) stages += stage;
    if (kind != LinkKind::network) continue;
    wires += stage;
    slowest_wire = std::max(slowest_wire, stage);
  }
  const double slowest = packet / bottleneck(context_, route.crossings);
  const auto& share = context_.parameters.first_of(
      {context_.topology.device(from_hca).type + ".store_and_forward", "verbs.store_and_forward"_key});
  out.terms.push_back(computed_term("first packet through every stage", share.value * std::max(0.0, stages - slowest),
                                    share.name, share.source));
  auto whole = whole_packet_term(context_, route, from_hca, packet);
  whole.time = whole.time - from_seconds(share.value * (wires - slowest_wire));  // paid as stages
  if (whole.time.ps > 0) out.terms.push_back(std::move(whole));
  out.flow.bytes = static_cast<double>(size.value) / rails;
  auto all = route.crossings;
  out.flow.legs = route.legs;
  for (int rail = 1; rail < rails; ++rail) {
    const auto more = network_route(from, to, static_cast<std::size_t>(rail), flow, direct_from, direct_to);
    all.insert(all.end(), more.crossings.begin(), more.crossings.end());
    add_legs(more, 1, out.flow.legs);
  }
  out.flow.crossings = merged(std::move(all));
  if (!is_eager && efa.is_read()) {
    cap(out.flow, efa.read_bandwidth(), "one adapter's reads", context_.topology.device(from_hca).type + ".rate");
  } else {
    add_rate_caps(out, from, to, rails);
  }
  if (is_granted) {
    // Before each window the receiver says so, and the window's first packet takes the way of the first one of all.
    add_eager_copies(out, from, to, size, false, false);
    const auto one_packet = sum(out.terms);
    const auto& window = context_.parameters.at(context_.topology.device(to_hca).type + ".libfabric_window");
    out.terms.push_back(computed_term(fmt::format("{} windows granted by the receiver", efa.grants()),
                                      efa.grants() * (one_way + one_packet.seconds()), window.name, window.source));
  } else if (is_eager) {
    add_eager_copies(out, from, to, size, direct_from, direct_to);
  }
  return out;
}

void Transfers::cap(Flow& flow, double bytes_per_s, std::string name, std::string parameter) const {
  if (bytes_per_s <= 0 || bytes_per_s >= flow.rate_cap) return;
  flow.rate_cap = bytes_per_s;
  flow.cap_name = std::move(name);
  flow.cap_parameter = std::move(parameter);
}

/// What one connection reaches whatever the links; over TCP the core that receives limits it, on all rails together.
void Transfers::add_rate_caps(Message& message, const EndPoint& from, const EndPoint& to, int rails) const {
  if (profile_.is_tcp) message.stream_rate = profile_.flow_bandwidth.bytes_per_s / rails;
  cap(message.flow, profile_.flow_bandwidth.bytes_per_s / rails, "one connection", own<"mpi.{}.flow_bandwidth">());
  for (const auto hca : {from.hcas.front(), to.hcas.front()})
    cap(message.flow, device_value_or(context_, hca, "connection_bandwidth", 0), "one connection of the adapter",
        context_.topology.device(hca).type + ".connection_bandwidth");
}

/// How closely messages of one sender follow each other, beside the time of their bytes.
void Transfers::set_gaps(Message& message, const EndPoint& from, const EndPoint& to, Bytes size, bool is_eager,
                         bool direct_from, bool direct_to) const {
  const auto hca = from.hcas.front();
  const double bytes = static_cast<double>(size.value);
  message.wire_gap = is_eager ? profile_.wire_gap : profile_.rendezvous_gap;
  message.wire_gap_parameter = is_eager ? own<"mpi.{}.wire_gap">() : own<"mpi.{}.rendezvous_gap">();
  const bool is_direct = direct_from || direct_to;
  const auto& busy = direct_to ? to : from;
  const bool is_handled = is_direct && !copies_by_adapter(context_, profile_, to.hcas.front());
  const auto& handled =
      on_processor(is_handled ? own<"mpi.{}.device_message_gap">() : own<"mpi.{}.message_gap">(), busy);
  const auto& posted =
      profile_.posts_verbs
          ? context_.parameters.first_of({context_.topology.device(hca).type + ".post_gap", handled.name})
          : handled;
  message.gap = from_seconds(posted.value);
  message.gap_parameter = posted.name;
  if (is_eager && direct_to && profile_.uses_gdrcopy) {
    // The receiver's processor handles every segment and writes it to the GPU before it looks at the next one.
    const auto& write = gdrcopy_write(to);
    message.unpacking = from_seconds((num_segments(size) - 1) * message.gap.seconds() + bytes / write.value);
    if (bytes / write.value > num_segments(size) * message.gap.seconds()) message.gap_parameter = write.name;
    message.gap += message.unpacking;
  } else if (is_eager && direct_to && profile_.unpacks_by_engine) {
    message.unpacking = static_cast<std::int64_t>(num_segments(size)) * context_.parameters["cuda.copy_overhead"_key];
    if (message.unpacking > message.gap) message.gap_parameter = "cuda.copy_overhead"_key;
    message.gap += message.unpacking;
  } else if (is_eager) {
    if (!is_inline(size, direct_from)) message.gap += profile_.fetch_gap;
    if (profile_.gap_copy.bytes_per_s > 0) message.gap += from_seconds(bytes / profile_.gap_copy.bytes_per_s);
  }
  const auto of_guest = virtual_message_gap(context_, hca);
  message.unpacking = std::min(message.unpacking, std::max(Duration{}, message.gap - of_guest));
  if (of_guest <= message.gap) return;
  message.gap = of_guest;
  message.gap_parameter = "virtualization.pvrdma.work_request_time"_key;
}

/// So are stores to it, combined into whole lines.
const Parameter& Transfers::gdrcopy_write(const EndPoint& end) const {
  return of_processor(context_, end.gpu, "gdrcopy_write_bandwidth", "gdrcopy.write_bandwidth"_key);
}

/// Data travel in the work request: the sender's processor must be able to read them, so device data never do.
bool Transfers::is_inline(Bytes size, bool direct_from) const {
  return size <= profile_.inline_limit && (!direct_from || size.value == 0);
}

double Transfers::num_segments(Bytes size) const {
  return std::max(1.0, std::ceil(static_cast<double>(size.value) / static_cast<double>(profile_.eager_segment.value)));
}

/// Every message finds out what memory it has; eager ones are handled on top of it, rendezvous leave the rest to HCAs.
void Transfers::add_device_handling(Message& message, const EndPoint& end, bool is_eager) const {
  const auto add = [&](Term more) {
    const auto known = std::find_if(message.terms.begin(), message.terms.end(), [&](const Term& t) {
      return t.name == more.name && t.parameter == more.parameter;
    });
    if (known == message.terms.end()) {
      message.terms.push_back(std::move(more));
    } else {
      known->time += more.time;
    }
  };
  if (profile_.device_check.ps > 0) add(term("memory of the buffer looked up", own<"mpi.{}.device_check">()));
  if (!is_eager) return;
  const auto usual = own<"mpi.{}.device_overhead">();
  const auto& owner = profile_.uses_gdrcopy ? of_processor(context_, end.gpu, "gdrcopy_overhead", usual)
                                            : context_.parameters.at(usual);
  add(term("device buffer handling", owner.name));
}

/// What the library takes on the processor of `end`, where that is known.
const Parameter& Transfers::on_processor(const std::string& usual, const EndPoint& end) const {
  return context_.parameters.first_of({usual + "." + processor_of(context_.topology, end.memory), usual});
}

/// Loads from GPU memory are the processor's: its own rate where known.
const Parameter& Transfers::gdrcopy_read(const EndPoint& end) const {
  return of_processor(context_, end.gpu, "gdrcopy_read_bandwidth", "gdrcopy.read_bandwidth"_key);
}

/// An eager message is copied through bounce buffers in segments. Host buffers: both sides copy the first segment while
/// the wire waits, later ones overlap. Device buffers: gdrcopy writes to the receiver's GPU, with old UCX it also reads
/// from the sender's; the slowest stage works all the time, each other stage holds the first segment once.
void Transfers::add_eager_copies(Message& message, const EndPoint& from, const EndPoint& to, Bytes size,
                                 bool direct_from, bool direct_to) const {
  const double first = static_cast<double>(std::min(size, profile_.eager_segment).value);
  const auto term_of = [&](std::string name, double seconds, const Parameter& owner) {
    message.terms.push_back(computed_term(std::move(name), seconds, owner.name, owner.source));
  };
  if (!direct_from && !direct_to) {
    if (profile_.eager_copy.bytes_per_s <= 0 || size <= profile_.inline_limit) return;
    term_of("copies through bounce buffers", 2 * first / profile_.eager_copy.bytes_per_s,
            context_.parameters.at(own<"mpi.{}.eager_copy_bandwidth">()));
    if (size <= profile_.eager_segment) return;
    message.terms.push_back(term("message of several segments", own<"mpi.{}.segmented_overhead">()));
    cap(message.flow, profile_.eager_bandwidth.bytes_per_s, "copies of later segments",
        own<"mpi.{}.eager_bandwidth">());
    return;
  }
  if (direct_to && profile_.unpacks_by_engine)
    message.terms.push_back(
        term("segments copied to the GPU by its engine", "cuda.copy_overhead"_key, num_segments(size)));
  if (copies_by_adapter(context_, profile_, to.hcas.front()) && size > profile_.eager_segment) {
    message.terms.push_back(term("message of several segments", own<"mpi.{}.segmented_overhead">()));
    cap(message.flow, profile_.eager_bandwidth.bytes_per_s, "packets that follow each other",
        own<"mpi.{}.eager_bandwidth">());
  }
  if (!profile_.uses_gdrcopy) return;
  const double wire = bottleneck(context_, message.flow.crossings);
  const auto add_copy = [&](const Parameter& rate, const char* name) {
    const double before = std::min(message.flow.rate_cap, wire);
    // The stage that was slowest until here holds the first segment once, when this one is slower; else this one does.
    term_of(name, first / std::max(before, rate.value), rate);
    cap(message.flow, rate.value, name, rate.name);
  };
  if (direct_from && profile_.reads_by_gdrcopy) {
    add_copy(gdrcopy_read(from), "gdrcopy from the GPU");
    message.sender_copies = from_seconds(static_cast<double>(size.value) / gdrcopy_read(from).value);
  }
  if (direct_to) add_copy(gdrcopy_write(to), "gdrcopy to the GPU");
  if (size <= profile_.eager_segment) return;
  message.terms.push_back(term("message of several segments", own<"mpi.{}.segmented_overhead">()));
  const auto& gap = on_processor(own<"mpi.{}.device_message_gap">(), to);
  message.terms.push_back(term("later segments", gap.name, num_segments(size) - 1));
}

void Transfers::slow_after_burst(Message& message, const EndPoint& from, const EndPoint& to,
                                 std::int64_t window) const {
  auto& flow = message.flow;
  if (from.hcas.empty() || to.hcas.empty() || flow.bytes <= 0) return;
  for (const auto hca : {from.hcas.front(), to.hcas.front()}) {
    const double after = device_value_or(context_, hca, "connection_sustained_bandwidth", 0);
    const double bytes = flow.bytes * static_cast<double>(window);
    const double burst = std::min(bytes, device_value_or(context_, hca, "connection_burst", bytes));
    const double before = std::min(flow.rate_cap, bottleneck(context_, flow.crossings));
    if (after <= 0 || after >= before || burst >= bytes) continue;
    cap(flow, bytes / (burst / before + (bytes - burst) / after), "one connection after its burst",
        context_.topology.device(hca).type + ".connection_sustained_bandwidth");
  }
}

/// t = wire gap + bytes / rate for each message of one connection; several connections fill each other's gaps.
void Transfers::repeat(Message& message, std::int64_t window, int connections) const {
  auto& flow = message.flow;
  if (message.window_rate > 0) flow.rate_cap = message.window_rate;
  if (flow.bytes > 0 && message.wire_gap.ps > 0)
    add_gap(context_, flow, message.wire_gap, connections,
            message.wire_gap_parameter.empty() ? gap_parameter_of(message) : message.wire_gap_parameter);
  flow.bytes *= static_cast<double>(window);
}

Message Transfers::over_network(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow) const {
  if (size.value == 0 || (!from.is_device() && !to.is_device())) {
    const auto host_from = from.in_host_memory();
    const auto host_to = to.in_host_memory();
    auto out = host_or_direct(host_from, host_to, size, flow, false, false);
    const double ends = (from.is_device() ? 1 : 0) + (to.is_device() ? 1 : 0);
    if (ends > 0 && profile_.device_check.ps > 0)
      out.terms.push_back(term("memory of the buffer looked up", own<"mpi.{}.device_check">(), ends));
    return out;
  }
  const auto from_reason = why_not_direct(from, from.hcas.front(), size);
  const auto to_reason = why_not_direct(to, to.hcas.front(), size);
  if (!from_reason.empty() || !to_reason.empty())
    return staged(from, to, size, flow, from_reason.empty() ? to_reason : from_reason);
  return host_or_direct(from, to, size, flow, from.is_device(), to.is_device());
}

}  // namespace fabricast::models::mpi
