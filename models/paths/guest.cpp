// SPDX-License-Identifier: Apache-2.0
// Gates, launch terms and what a result says about the hosts' virtualization. The wire is in ports.cpp.
#include "paths/guest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/parameter_name.hpp"
#include "fabricast/vm_operations.hpp"
#include "paths/contention.hpp"

namespace fabricast::models {

namespace {

std::optional<GpuProfile> profile_of_guest(const PlanContext& context, DeviceId gpu) {
  const auto& name = guest_settings(context, gpu).profile_of(short_name(context, gpu));
  if (name.empty()) return std::nullopt;
  return find_gpu_profile(profile_family(context.topology.device(gpu).type, context.parameters), name,
                          context.parameters);
}

}  // namespace

std::string short_name(const PlanContext& context, DeviceId device) {
  const auto one = context.topology.device(device);
  return one.name.substr(context.topology.host_name(one.host).size() + 1);
}

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

bool is_tree_hidden(const PlanContext& context, DeviceId device) {
  const auto& guest = guest_settings(context, device);
  return guest.is_virtual() && guest.guest_topology == GuestTopology::hidden;
}

double scattered_threads_factor(const PlanContext& context, DeviceId gpu) {
  const auto& topology = context.topology;
  if (!is_tree_hidden(context, gpu)) return 1;
  std::set<int> memories;
  for (const auto other : topology.devices(DeviceKind::gpu, topology.host_of(gpu)))
    if (is_same_system(context, gpu, other)) memories.insert(topology.local_memory(other).value);
  return memories.size() > 1 ? context.parameters["host.scattered_threads"_key] : 1;
}

DeviceId staging_memory(const PlanContext& context, DeviceId device) {
  const auto& topology = context.topology;
  if (!is_tree_hidden(context, device)) return topology.local_memory(device);
  for (const auto gpu : topology.devices(DeviceKind::gpu, topology.host_of(device)))
    if (is_same_system(context, device, gpu)) return topology.local_memory(gpu);
  return topology.local_memory(device);
}

bool has_far_buffers(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  return std::ranges::any_of(
      gpus, [&](DeviceId gpu) { return staging_memory(context, gpu) != context.topology.local_memory(gpu); });
}

bool has_peer(const PlanContext& context, DeviceId gpu, bool by_nvlink) {
  const auto& topology = context.topology;
  const auto others = topology.devices(DeviceKind::gpu, topology.host_of(gpu));
  return std::ranges::any_of(others, [&](DeviceId other) {
    if (other == gpu || !is_same_system(context, gpu, other)) return false;
    const auto path = topology.path_in_host(gpu, other);
    return (path && path->uses_nvlink) == by_nvlink;
  });
}

bool has_whole_gpu(const PlanContext& context, DeviceId gpu) {
  const auto& guest = guest_settings(context, gpu);
  const auto mode = gpu_mode_of(context, gpu);
  const auto& name = guest.profile_of(short_name(context, gpu));
  if (name.empty() || (mode != GpuMode::vgpu && mode != GpuMode::mig)) return true;
  const auto profile = profile_of_guest(context, gpu);
  return profile && profile->max_instances == 1 && profile->memory_fraction >= 1;
}

Gate nvlink_gate_of(const PlanContext& context, DeviceId gpu) {
  return nvlink_gate(guest_settings(context, gpu), gpu_mode_of(context, gpu), has_whole_gpu(context, gpu),
                     compute_capability(context, gpu));
}

Gate multicast_gate_of(const PlanContext& context, DeviceId gpu) {
  return multicast_gate(guest_settings(context, gpu), gpu_mode_of(context, gpu), has_whole_gpu(context, gpu));
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
                        has_whole_gpu(context, gpu), compute_capability(context, gpu));
}

namespace {

/// Calls to a remote GPU that wait for their answer: software at both ends, and the network's round trip.
std::vector<Term> remote_call_terms(const PlanContext& context, const Virtualization& guest, double calls) {
  const bool is_tcp = is_tcp_only(guest.nic);
  const auto what = calls == 1 ? std::string("call") : fmt::format("{:.0f} waiting calls", calls);
  return {parameter_term(context.parameters,
                         fmt::format("virtualization: {} to the remote GPU, software at both ends", what),
                         is_tcp ? "remote_gpu.tcp_call_time"_key : "remote_gpu.rdma_call_time"_key, calls),
          parameter_term(
              context.parameters,
              fmt::format("virtualization: {} to the remote GPU, round trip over {}", what, to_string(guest.nic)),
              is_tcp ? "remote_gpu.tcp_round_trip"_key : "remote_gpu.rdma_round_trip"_key, calls)};
}

}  // namespace

std::vector<Term> virtual_launch_terms(const PlanContext& context, DeviceId gpu) {
  std::vector<Term> terms;
  const auto& guest = guest_settings(context, gpu);
  if (gpu_mode_of(context, gpu) == GpuMode::remote) {
    for (auto& term : remote_call_terms(context, guest, 1)) terms.push_back(std::move(term));
  }
  return terms;
}

Result<std::optional<GpuSharing>> vgpu_sharing(const PlanContext& context, DeviceId gpu, Duration kernel) {
  const auto& guest = guest_settings(context, gpu);
  const bool is_time_sliced = gpu_mode_of(context, gpu) == GpuMode::vgpu;
  const int busy = guest.busy_neighbours_of(short_name(context, gpu));
  if (!is_time_sliced || (busy == 0 && has_whole_gpu(context, gpu))) return std::nullopt;
  GpuSharing sharing;
  sharing.policy = guest.scheduler;
  sharing.profile = guest.profile_of(short_name(context, gpu));
  sharing.slice = guest.time_slice;
  sharing.location = guest.location;
  if (busy > 0) sharing.clients.push_back({"neighbour", kernel, {}, 0, busy});
  if (const auto scheduler = time_slicing_of(context, sharing, gpu); !scheduler)
    return tl::unexpected(scheduler.error());
  return sharing;
}

namespace {

/// Time slices of others on the GPU, simulated event by event; what computes nothing waits for none.
std::vector<Term> slice_terms(const PlanContext& context, DeviceId gpu, Duration compute) {
  if (compute.ps <= 0) return {};
  const auto sharing = vgpu_sharing(context, gpu, compute);
  if (!sharing || !*sharing) return {};
  const auto scheduler = time_slicing_of(context, **sharing, gpu);
  const auto wait = slice_wait(*scheduler, compute, clients_of(**sharing));
  const auto& switching = context.parameters.at("gpu.context_switch_time"_key);
  return {{fmt::format("virtualization: time slices of others ({})", to_string(scheduler->policy)), wait.wait,
           "gpu.time_slice"_key, context.parameters.at("gpu.time_slice"_key).source},
          {"virtualization: context switches of the GPU", wait.switching, switching.name, switching.source}};
}

/// Of a remote GPU: what its client asked for, less where clients together ask for more than all of it and queue.
double remote_share(const PlanContext& context, DeviceId gpu) {
  const auto& guest = guest_settings(context, gpu);
  const auto* own = guest.held(short_name(context, gpu));
  if (own == nullptr) return guest.gpu_share;
  double asked = 0;
  for (int host = 0; host < context.topology.num_hosts(); ++host) {
    for (const auto& held : context.topology.virtualization(host).devices)
      if (held.remote == own->remote) asked += held.share;
  }
  return own->share / std::max(1.0, asked);
}

/// Calls of a step that wait for their answer, and what the GPU's other clients leave of it.
std::vector<Term> remote_step_terms(const PlanContext& context, DeviceId gpu, Duration compute, double share) {
  const double calls = context.parameters["remote_gpu.waiting_calls_per_step"_key];
  auto terms = remote_call_terms(context, guest_settings(context, gpu), calls);
  if (share < 1)
    terms.push_back({fmt::format("virtualization: {:.3g} of the remote GPU", share),
                     from_seconds(compute.seconds() * (1 / share - 1)), "virtualization.gpu_share", "the scenario"});
  return terms;
}

}  // namespace

std::vector<Term> virtual_compute_terms(const PlanContext& context, DeviceId gpu, Duration compute) {
  std::vector<Term> terms;
  const auto& guest = guest_settings(context, gpu);
  auto mode = gpu_mode_of(context, gpu);
  if (mode == GpuMode::bare_metal) return terms;
  if (mode == GpuMode::remote) {
    const double share = remote_share(context, gpu);
    terms = remote_step_terms(context, gpu, compute, share);
    compute = from_seconds(compute.seconds() / share);
    // The server is a VM that has the GPU by passthrough [vSphere Bitfusion 3.0 installation guide].
    mode = GpuMode::passthrough;
  }
  if (const auto profile = profile_of_guest(context, gpu); profile && profile->compute_fraction < 1)
    terms.push_back(
        {fmt::format("virtualization: {} has {:.3g} of the multiprocessors", profile->name, profile->compute_fraction),
         from_seconds(compute.seconds() * (1 / profile->compute_fraction - 1)), "virtualization.profile",
         profile->source});
  for (auto& term : slice_terms(context, gpu, compute)) terms.push_back(std::move(term));
  const auto& tax = context.parameters.at(named<"virtualization.{}.compute_tax">(to_string(mode)));
  terms.push_back({fmt::format("virtualization: compute through {}", to_string(mode)),
                   from_seconds(compute.seconds() * tax.value), tax.name, tax.source});
  if (guest.neighbours() > 1) {
    const std::string own = named<"virtualization.{}.split_tax">(to_string(mode));
    const auto& split =
        context.parameters.at(context.parameters.contains(own) ? own : std::string("virtualization.split_tax"_key));
    const double others = 1 - 1.0 / guest.neighbours();
    terms.push_back({fmt::format("virtualization: {} VMs instead of one on the host", guest.neighbours()),
                     from_seconds(compute.seconds() * split.value * others), split.name, split.source});
  }
  return terms;
}

namespace {

/// What was written of a VM beside its devices and changes times, in its file's words: ", vcpus 8, numa off".
std::string written_of(const Virtualization& guest) {
  const auto flag = [](bool is_on) { return std::string(is_on ? "on" : "off"); };
  const std::vector<std::pair<std::string, std::string>> all{
      {"vcpus", guest.vcpus ? std::to_string(*guest.vcpus) : ""},
      {"cpu_load", fmt::format("{:g}", guest.cpu_load)},
      {"cpu_shares", fmt::format("{:g}", guest.cpu_shares)},
      {"numa",
       guest.numa_nodes.empty() ? flag(guest.is_numa_aligned) : fmt::format("[{}]", fmt::join(guest.numa_nodes, ", "))},
      {"huge_pages", flag(guest.has_huge_pages)},
      {"latency_sensitivity", std::string(to_string(guest.latency_sensitivity))},
      {"acs", std::string(to_string(guest.acs))},
      {"ats", flag(guest.has_ats)},
      {"allow_p2p", flag(guest.allow_p2p)},
      {"translation", std::string(to_string(guest.translation))},
      {"guest_topology", std::string(to_string(guest.guest_topology))},
      {"nvswitches", std::string(to_string(guest.nvswitches))},
      {"rate_limit", guest.rate_limit ? to_string(*guest.rate_limit) : ""},
      {"mtu", std::to_string(guest.mtu)},
      {"vhost", flag(guest.has_vhost)},
      {"profile", guest.profiles.size() > 1 ? fmt::format("[{}]", fmt::join(guest.profiles, ", ")) : guest.profile},
      {"busy_neighbours", std::to_string(guest.busy_neighbours)},
      {"gpu_share", fmt::format("{:g}", guest.gpu_share)}};
  std::string out;
  for (const auto& [key, value] : all)
    if (guest.locations.contains(key)) out += fmt::format(", {} {}", key, value);
  return out;
}

}  // namespace

std::vector<GivenUsed> virtual_settings(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  std::vector<GivenUsed> out;
  std::set<int> shapes;
  for (int host = 0; host < context.topology.num_hosts(); ++host) {
    const auto& guest = context.topology.virtualization(host);
    if (!guest.is_virtual() || !shapes.insert(context.topology.host_shape(host)).second) continue;
    const auto version =
        guest.hypervisor == Hypervisor::esxi ? fmt::format(" {}", to_string(guest.version)) : std::string();
    if (!guest.vm_name.empty()) {
      out.push_back({"VM", guest.vm_name, held_devices(guest),
                     fmt::format("{}{}{}", to_string(guest.hypervisor), version, written_of(guest))});
      continue;
    }
    out.push_back({"virtualization", std::string(to_string(guest.mode)),
                   fmt::format("GPUs by {}, adapters by {}", to_string(guest.gpu), to_string(guest.nic)),
                   fmt::format("{}{}, {} VM{} per host{}", to_string(guest.hypervisor), version, guest.vms_per_host,
                               guest.vms_per_host == 1 ? "" : "s", written_of(guest))});
  }
  if (gpus.empty()) return out;
  const auto gpu = gpus.front();
  const auto redirection = [&] {
    const auto& guest = guest_settings(context, gpu);
    return GivenUsed{"peer traffic",
                     guest.is_virtual()
                         ? fmt::format("acs {}, ats {}", to_string(guest.acs), guest.has_ats ? "on" : "off")
                         : fmt::format("acs {}", to_string(guest.acs)),
                     "through the root complex",
                     guest.acs == AcsMode::redirect ? "access control redirects every request"
                                                    : "devices without ATS leave translation to the root complex"};
  };
  if (out.empty()) {
    if (guest_settings(context, gpu).redirects_peers()) out.push_back(redirection());
    return out;
  }
  for (const bool by_nvlink : {true, false}) {
    if (!has_peer(context, gpu, by_nvlink)) continue;
    const auto gate = peer_gate_of(context, gpu, by_nvlink);
    const bool is_wanted = context.software.nccl_p2p;
    out.push_back({fmt::format("peer access over {}", by_nvlink ? context.topology.gpu_link_word(gpu) : "PCIe"),
                   is_wanted ? "default" : "off", is_wanted && gate.is_open ? "yes" : "no",
                   is_wanted ? gate.reason : "software.nccl.p2p: off"});
  }
  const auto hcas = context.topology.hcas_by_distance(gpu);
  if (!hcas.empty()) {
    const auto gate = gpudirect_gate_of(context, gpu, hcas.front());
    out.push_back({"GPUDirect RDMA in the VM", "default", gate.is_open ? "possible" : "impossible", gate.reason});
    if (gate.is_open && guest_settings(context, gpu).redirects_peers()) out.push_back(redirection());
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
      out.insert(guest.locations.contains("guest_topology")
                     ? "the guest does not see the PCIe tree: all devices look equally far (PHB)"
                     : fmt::format("{} hides the PCIe tree unless told otherwise (guest_topology: hidden): all devices "
                                   "look equally far (PHB)",
                                   to_string(guest.hypervisor)));
    if (guest.is_container) out.insert("a container inside the VM costs nothing of its own");
    if (guest.nic == NicMode::pvrdma)
      out.insert("PVRDMA: buffers are registered once, before the measurement (up to 0.5 s per GB in QEMU)");
  }
  return {out.begin(), out.end()};
}

}  // namespace fabricast::models
