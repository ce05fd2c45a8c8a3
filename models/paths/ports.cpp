// SPDX-License-Identifier: Apache-2.0
// Adapters as VMs use them. Per end: a time per message, and a port whose rate is
//   passthrough, sr-iov, pvrdma:  payload rate x share; a VM's virtual function at most its rate limit
//   vmxnet3, virtio:              1 / (byte time + packet time / (MTU - 52 B of IP and TCP headers))
// VMs of one host meet in the adapter's own switch (sr-iov), in the hypervisor's (tcp) or by memory copy (pvrdma).
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/parameter_name.hpp"
#include "fabricast/models/payload.hpp"
#include "paths/guest.hpp"

namespace fabricast::models {

namespace {

constexpr double k_tcp_headers = 52;    // IPv4 20, TCP 20, timestamps 12
constexpr double k_normal_shares = 50;  // of a vNIC in network I/O control; low 25, high 100

struct Port {
  double rate = std::numeric_limits<double>::infinity();
  std::string parameter;
};

Port virtual_port(const PlanContext& context, DeviceId hca) {
  const auto& guest = guest_settings(context, hca);
  const auto nic = nic_mode_of(context, hca);
  const auto mode = to_string(nic);
  if (is_tcp_only(nic)) return {software_port_rate(context, guest, nic), named<"virtualization.{}.packet_time">(mode)};
  const auto name = named<"virtualization.{}.port_share">(mode);
  const double wire = device_value(context, hca, "rate");
  const double payload = payload_share(context.topology, context.parameters, context.topology.device(hca).type);
  const double seen = std::min(payload, device_value_or(context, hca, "payload_efficiency", 1));
  Port port{wire * seen * context.parameters.number(name), name};
  const auto& small_pages = context.parameters.at("virtualization.small_page_bandwidth"_key);
  if (!guest.has_huge_pages && nic != NicMode::pvrdma && small_pages.value < port.rate)
    port = {small_pages.value, small_pages.name};
  return port;
}

/// Of the host's VMs, the one that `user` is of: 0 where VMs are hosts of their own, or nobody says who talks.
int vm_in_host(const PlanContext& context, DeviceId hca, DeviceId user) {
  if (user.value < 0 || guest_settings(context, hca).vms_per_host < 2) return 0;
  const auto& topology = context.topology;
  const int first = topology.guest_of(topology.device_in_host(topology.host_of(hca), DeviceKind::memory, 0));
  return topology.guest_of(user) - first;
}

/// Each VM has a virtual function of its own on the adapter, with its own rate limit; the port itself is shared.
void add_function(const PlanContext& context, DeviceId hca, Limit limit, int vm, Route& route) {
  const auto& guest = guest_settings(context, hca);
  const auto rate_limit = guest.rate_limit_of(short_name(context, hca));
  if (!rate_limit || (nic_mode_of(context, hca) != NicMode::sr_iov && guest.vm_name.empty())) return;
  route.crossings.push_back(
      {context.resources.extra(limit, hca, rate_limit->bytes_per_s, "virtualization.rate_limit", vm), 1});
}

/// VMs of unlike VLANs have no way to each other: the fabric's switches do not route.
void check_vlans(const PlanContext& context, DeviceId from_hca, DeviceId to_hca) {
  const auto& from = guest_settings(context, from_hca);
  const auto& to = guest_settings(context, to_hca);
  if (from.vm_name.empty() || to.vm_name.empty() || from.vlan == to.vlan) return;
  const auto name = [&](DeviceId hca, int vlan) {
    return fmt::format("VM '{}' {}", context.topology.host_name(context.topology.host_of(hca)),
                       vlan == 0 ? std::string("without VLAN") : fmt::format("on VLAN {}", vlan));
  };
  throw NoRoute(fmt::format("{} and {} do not reach each other without a router", name(from_hca, from.vlan),
                            name(to_hca, to.vlan)),
                "give port groups that talk to each other one `vlan`, or name the `devices` of VMs of one VLAN");
}

void add_end(const PlanContext& context, DeviceId hca, Limit limit, DeviceId user, Route& route) {
  const auto nic = nic_mode_of(context, hca);
  if (nic == NicMode::bare_metal) return;
  const auto& guest = guest_settings(context, hca);
  const bool is_high = guest.latency_sensitivity == LatencySensitivity::high;
  const double share = is_high ? context.parameters["virtualization.latency_sensitivity_share"_key] : 1;
  const auto& host = context.topology.host_name(context.topology.host_of(hca));
  route.guest_terms.push_back(parameter_term(
      context.parameters,
      fmt::format("virtualization: {} at {}{}", to_string(nic), host, is_high ? ", latency sensitivity high" : ""),
      named<"virtualization.{}.message_time">(to_string(nic)), share));
  if (nic == NicMode::virtio && !guest.has_vhost)
    route.guest_terms.push_back(parameter_term(context.parameters,
                                               fmt::format("virtualization: packets through the emulator at {}", host),
                                               "virtualization.virtio.emulator_message_time"_key));
  const double overcommit = vcpus_per_core(context, hca);
  if (overcommit > 1)
    route.guest_terms.push_back(
        parameter_term(context.parameters,
                       fmt::format("virtualization: waiting for a core at {}, {:.2g} vCPUs each", host, overcommit),
                       "virtualization.overcommit_wait"_key, overcommit - 1));
  const auto port = virtual_port(context, hca);
  const int vm = vm_in_host(context, hca, user);
  const int crossed = context.resources.extra(limit, hca, port.rate, port.parameter, vm);
  route.crossings.push_back({crossed, 1});
  if (limit == Limit::virtual_out && is_tcp_only(nic) && guest.network_shares != k_normal_shares)
    context.resources.set_shares(crossed, guest.network_shares / k_normal_shares);
  add_function(context, hca, limit == Limit::virtual_out ? Limit::function_out : Limit::function_in, vm, route);
}

}  // namespace

double cores_of(const PlanContext& context, int host) {
  const auto socket = context.topology.devices(DeviceKind::socket, host).front();
  return context.topology.host_spec(host).num_sockets * device_value_or(context, socket, "cores", k_unknown_cores);
}

double vcpus_per_core(const PlanContext& context, DeviceId device) {
  const auto& guest = guest_settings(context, device);
  if (!guest.is_virtual() || guest.latency_sensitivity == LatencySensitivity::high) return 1;
  const double cores = cores_of(context, context.topology.host_of(device));
  const double wanted = guest.vm_name.empty() ? guest.vms_per_host * guest.vcpus.value_or(0) : guest.vcpus_on_host;
  return std::max(1.0, wanted / cores);
}

double software_port_rate(const PlanContext& context, const Virtualization& guest, NicMode nic) {
  const auto& parameters = context.parameters;
  const auto mode = to_string(nic);
  double packet = parameters.at(named<"virtualization.{}.packet_time">(mode)).value;
  if (nic == NicMode::virtio && !guest.has_vhost)
    packet += parameters.at("virtualization.virtio.emulator_packet_time"_key).value;
  return 1 / (parameters.at(named<"virtualization.{}.byte_time">(mode)).value + packet / (guest.mtu - k_tcp_headers));
}

std::vector<Term> remote_copy_terms(const PlanContext& context, DeviceId gpu, DeviceId hca, Bytes size) {
  if (gpu_mode_of(context, gpu) != GpuMode::remote) return {};
  auto terms = virtual_launch_terms(context, gpu);
  const auto port = virtual_port(context, hca);
  const auto* parameter = context.parameters.find(port.parameter);
  terms.push_back({"virtualization: data to or from the remote GPU",
                   from_seconds(static_cast<double>(size.value) / port.rate), port.parameter,
                   parameter == nullptr ? "" : parameter->source});
  return terms;
}

Duration virtual_message_gap(const PlanContext& context, DeviceId hca) {
  if (nic_mode_of(context, hca) != NicMode::pvrdma) return {};
  return context.parameters["virtualization.pvrdma.work_request_time"_key];
}

void add_virtual_port(const PlanContext& context, DeviceId hca, bool is_sender, DeviceId user, Route& route) {
  add_end(context, hca, is_sender ? Limit::virtual_out : Limit::virtual_in, user, route);
}

void add_virtual_ports(const PlanContext& context, DeviceId from_hca, DeviceId to_hca, Route& route, DeviceId from_user,
                       DeviceId to_user) {
  add_virtual_port(context, from_hca, true, from_user, route);
  add_virtual_port(context, to_hca, false, to_user, route);
}

bool can_stay_inside_host(const PlanContext& context, DeviceId from_hca, DeviceId to_hca) {
  const auto& topology = context.topology;
  if (topology.machine_of(topology.host_of(from_hca)) != topology.machine_of(topology.host_of(to_hca))) return false;
  const auto from = nic_mode_of(context, from_hca);
  const auto to = nic_mode_of(context, to_hca);
  if (is_on_hypervisor_switch(from) && is_on_hypervisor_switch(to)) return true;
  // The adapter's own switch joins its virtual functions with each other and with the port of the hypervisor's switch.
  return topology.hardware(from_hca) == topology.hardware(to_hca) && (from == NicMode::sr_iov || to == NicMode::sr_iov);
}

Diagnostic no_network_path(const PlanContext& context, const SourceLocation& where, int from_host, int to_host) {
  const auto& topology = context.topology;
  const auto& from = topology.host_name(from_host);
  const auto& to = topology.host_name(to_host);
  std::string hint = "connect the HCAs of both in `fabric`";
  for (const int host : {from_host, to_host})
    if (topology.count(DeviceKind::hca, host) == 0)
      hint =
          fmt::format("'{}' has no HCA: give it one, `devices: [{{name: hca0, type: connectx-6-hdr, below: socket0}}]`",
                      topology.host_name(host));
  if (topology.machine_of(from_host) == topology.machine_of(to_host))
    hint = "VMs of one machine meet in an adapter's switch (sr-iov) or the hypervisor's (tcp, pvrdma)";
  return make_error_at(where, fmt::format("no network path from host '{}' to host '{}'", from, to), hint);
}

bool add_inside_host(const PlanContext& context, DeviceId from_hca, DeviceId to_hca, Route& route, DeviceId from_user,
                     DeviceId to_user) {
  check_vlans(context, from_hca, to_hca);
  if (!can_stay_inside_host(context, from_hca, to_hca)) return false;
  add_virtual_ports(context, from_hca, to_hca, route, from_user, to_user);
  const auto nic = nic_mode_of(context, from_hca);
  if (nic == NicMode::sr_iov || nic_mode_of(context, to_hca) == NicMode::sr_iov) {
    route.adapter_latency += from_seconds(device_value(context, from_hca, "latency"));
    return true;
  }
  const bool is_copy = nic == NicMode::pvrdma && nic_mode_of(context, to_hca) == NicMode::pvrdma;
  const auto& limit = context.parameters.at(is_copy ? "virtualization.pvrdma.copy_bandwidth"_key
                                                    : "virtualization.switch_bandwidth"_key);
  // The machine's, whichever of its memories the VM has.
  const auto memory = context.topology.local_memory(context.topology.hardware(from_hca));
  const auto kind = is_copy ? Limit::virtual_copy : Limit::virtual_switch;
  route.crossings.push_back({context.resources.extra(kind, memory, limit.value, limit.name), 1});
  return true;
}

}  // namespace fabricast::models
