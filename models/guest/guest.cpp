// SPDX-License-Identifier: Apache-2.0
// Gates, launch terms and what a result says about the hosts' virtualization. The wire is in ports.cpp.
#include "guest/guest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

namespace fabricast::models {

namespace {

std::string short_name(const PlanContext& context, DeviceId device) {
  const auto one = context.topology.device(device);
  return one.name.substr(context.topology.host_name(one.host).size() + 1);
}

int compute_capability_of(const PlanContext& context, DeviceId gpu) {
  return static_cast<int>(device_value(context, gpu, "compute_capability"));
}

/// Framebuffer of a profile in GB: a100-20c -> 20, 2g.10gb -> 10, 4q -> 4; 0 when the name has none.
double profile_gigabytes(const std::string& profile) {
  const auto dash = profile.find_last_of("-.");
  const char* from = profile.c_str() + (dash == std::string::npos ? 0 : dash + 1);
  return std::strtod(from, nullptr);
}

}  // namespace

const Virtualization& guest_settings(const PlanContext& context, DeviceId device) {
  return context.topology.virtualization(context.topology.host_of(device));
}

GpuMode gpu_mode_of(const PlanContext& context, DeviceId gpu) {
  const auto& guest = guest_settings(context, gpu);
  return guest.is_virtual() ? guest.gpu_mode(short_name(context, gpu)) : GpuMode::bare_metal;
}

NicMode nic_mode_of(const PlanContext& context, DeviceId hca) {
  const auto& guest = guest_settings(context, hca);
  return guest.is_virtual() ? guest.nic_mode(short_name(context, hca)) : NicMode::bare_metal;
}

bool is_same_system(const PlanContext& context, DeviceId a, DeviceId b) {
  return context.topology.guest_of(a) == context.topology.guest_of(b);
}

bool has_whole_gpu(const PlanContext& context, DeviceId gpu) {
  const auto& guest = guest_settings(context, gpu);
  const auto mode = gpu_mode_of(context, gpu);
  if (guest.profile.empty() || (mode != GpuMode::vgpu && mode != GpuMode::mig)) return true;
  constexpr double k_gib = 1073741824.0;
  return profile_gigabytes(guest.profile) >= 0.95 * device_value_or(context, gpu, "memory", 0) / k_gib;
}

Gate nvlink_gate_of(const PlanContext& context, DeviceId gpu) {
  return nvlink_gate(guest_settings(context, gpu), gpu_mode_of(context, gpu), has_whole_gpu(context, gpu));
}

Gate pcie_gate_of(const PlanContext& context, DeviceId gpu) {
  const auto& guest = guest_settings(context, gpu);
  const auto mode = gpu_mode_of(context, gpu);
  if (!guest.is_virtual()) return {};
  if (mode != GpuMode::passthrough)
    return {false, fmt::format("a {} GPU has no peer access over PCIe", to_string(mode))};
  return peer_gate(guest);
}

Gate gpudirect_gate_of(const PlanContext& context, DeviceId gpu, DeviceId hca) {
  return gpudirect_gate(guest_settings(context, gpu), gpu_mode_of(context, gpu), nic_mode_of(context, hca),
                        has_whole_gpu(context, gpu), compute_capability_of(context, gpu));
}

std::vector<Term> virtual_launch_terms(const PlanContext& context, DeviceId gpu) {
  std::vector<Term> terms;
  const auto& guest = guest_settings(context, gpu);
  if (gpu_mode_of(context, gpu) == GpuMode::remote) {
    const bool is_tcp = is_tcp_only(guest.nic);
    terms.push_back(parameter_term(
        context.parameters, fmt::format("virtualization: call to the remote GPU over {}", to_string(guest.nic)),
        is_tcp ? "virtualization.remote_gpu.tcp_call_time" : "virtualization.remote_gpu.rdma_call_time"));
  }
  return terms;
}

std::vector<Term> virtual_compute_terms(const PlanContext& context, DeviceId gpu, Duration compute) {
  std::vector<Term> terms;
  const auto& guest = guest_settings(context, gpu);
  const auto mode = gpu_mode_of(context, gpu);
  if (mode == GpuMode::bare_metal) return terms;
  if (mode == GpuMode::remote) {
    const bool is_tcp = is_tcp_only(guest.nic);
    const auto* call = is_tcp ? "virtualization.remote_gpu.tcp_call_time" : "virtualization.remote_gpu.rdma_call_time";
    const double calls = context.parameters.number("virtualization.remote_gpu.calls_per_step");
    terms.push_back(parameter_term(context.parameters,
                                   fmt::format("virtualization: {:.0f} calls that wait for the remote GPU", calls),
                                   call, calls));
    if (guest.gpu_share < 1)
      terms.push_back({fmt::format("virtualization: {:g} of the remote GPU", guest.gpu_share),
                       from_seconds(compute.seconds() * (1 / guest.gpu_share - 1)), "virtualization.gpu_share",
                       "the scenario"});
    return terms;
  }
  const auto& tax = context.parameters.at(fmt::format("virtualization.{}.compute_tax", to_string(mode)));
  terms.push_back({fmt::format("virtualization: compute through {}", to_string(mode)),
                   from_seconds(compute.seconds() * tax.value), tax.name, tax.source});
  if (guest.vms_per_host > 1) {
    const auto& split = context.parameters.at("virtualization.split_tax");
    const double others = 1 - 1.0 / guest.vms_per_host;
    terms.push_back({fmt::format("virtualization: {} VMs instead of one on the host", guest.vms_per_host),
                     from_seconds(compute.seconds() * split.value * others), split.name, split.source});
  }
  return terms;
}

std::vector<GivenUsed> virtual_settings(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  std::vector<GivenUsed> out;
  std::set<int> shapes;
  for (int host = 0; host < context.topology.num_hosts(); ++host) {
    const auto& guest = context.topology.virtualization(host);
    if (!guest.is_virtual() || !shapes.insert(context.topology.host_shape(host)).second) continue;
    const auto version =
        guest.hypervisor == Hypervisor::esxi ? fmt::format(" {}", to_string(guest.version)) : std::string();
    out.push_back({"virtualization", std::string(to_string(guest.mode)),
                   fmt::format("GPUs by {}, adapters by {}", to_string(guest.gpu), to_string(guest.nic)),
                   fmt::format("{}{}, {} VM{} per host", to_string(guest.hypervisor), version, guest.vms_per_host,
                               guest.vms_per_host == 1 ? "" : "s")});
  }
  if (out.empty() || gpus.empty()) return out;
  const auto gpu = gpus.front();
  if (context.topology.count(DeviceKind::gpu, context.topology.host_of(gpu)) > 1) {
    const bool has_nvlink = device_value_or(context, gpu, "nvlink_links", 0) > 0;
    const auto gate = has_nvlink ? nvlink_gate_of(context, gpu) : pcie_gate_of(context, gpu);
    out.push_back({fmt::format("peer access over {}", has_nvlink ? "NVLink" : "PCIe"), "default",
                   gate.is_open ? "yes" : "no", gate.reason});
  }
  const auto hcas = context.topology.hcas_by_distance(gpu);
  if (!hcas.empty()) {
    const auto gate = gpudirect_gate_of(context, gpu, hcas.front());
    out.push_back({"GPUDirect RDMA in the VM", "default", gate.is_open ? "possible" : "impossible", gate.reason});
    if (gate.is_open && guest_settings(context, gpu).redirects_peers()) {
      const auto& guest = guest_settings(context, gpu);
      out.push_back({"peer traffic", fmt::format("acs {}, ats {}", to_string(guest.acs), guest.has_ats ? "on" : "off"),
                     "through the root complex",
                     guest.acs == AcsMode::redirect ? "access control redirects every request"
                                                    : "devices without ATS leave translation to the root complex"});
    }
  }
  return out;
}

std::vector<std::string> virtual_assumptions(const PlanContext& context, const std::vector<int>& hosts) {
  std::set<std::string> out;
  for (const int host : hosts) {
    const auto& guest = context.topology.virtualization(host);
    if (!guest.is_virtual()) continue;
    if (guest.locations.empty())
      out.insert(
          fmt::format("{}: every setting not given is as the vendors' guides recommend (EFI, full reservation, "
                      "pinned vCPUs, huge pages, peer access allowed, ATS on)",
                      to_string(guest.mode)));
    if (guest.guest_topology == GuestTopology::hidden)
      out.insert("the guest does not see the PCIe tree: all devices look equally far (PHB)");
    if (guest.is_container) out.insert("a container inside the VM costs nothing of its own");
    if (guest.nic == NicMode::pvrdma)
      out.insert("PVRDMA: buffers are registered once, before the measurement (up to 0.5 s per GB in QEMU)");
  }
  return {out.begin(), out.end()};
}

}  // namespace fabricast::models
