// SPDX-License-Identifier: Apache-2.0
// What virtual machines do to a connection: gates that close a direct path, ports that carry less, terms per message.
// Every effect is a parameter of the way a VM gets the device (`virtualization.<mode>.*`), see docs/MODELS.md,
// "Virtualization".
#pragma once

#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "fabricast/models/virtualization.hpp"
#include "fabricast/virtualization.hpp"
#include "paths/transport.hpp"

namespace fabricast::models {

/// Name of a device without its host: gpu0.
std::string short_name(const PlanContext& context, DeviceId device);

/// Settings of the host or VM a device is in.
const Virtualization& guest_settings(const PlanContext& context, DeviceId device);
GpuMode gpu_mode_of(const PlanContext& context, DeviceId gpu);
NicMode nic_mode_of(const PlanContext& context, DeviceId hca);

/// Two devices or memories belong to one system: the same VM, or the same host on bare metal.
bool is_same_system(const PlanContext& context, DeviceId a, DeviceId b);

/// The device is in a VM that shows neither PCIe tree nor NUMA nodes.
bool is_tree_hidden(const PlanContext& context, DeviceId device);

/// How much longer host threads of a VM take that spans several sockets and does not see them: its kernel spreads
/// threads and buffers over all. 1 elsewhere.
double scattered_threads_factor(const PlanContext& context, DeviceId gpu);

/// The memory in which shared-memory buffers of a GPU lie: the nearest one; in a guest that shows one NUMA node, which
/// cannot choose, that of the guest's first GPU for all. The guest's kernel fills one node in order: eight H200 of two
/// sockets share what four of one have (own logs). Pinned buffers of the driver spread over both there (own copies).
DeviceId staging_memory(const PlanContext& context, DeviceId device);

/// Some of the GPUs have theirs in another memory than the nearest one.
bool has_far_buffers(const PlanContext& context, const std::vector<DeviceId>& gpus);

/// The vGPU or MIG profile takes the whole GPU (always true without a profile).
bool has_whole_gpu(const PlanContext& context, DeviceId gpu);

/// Another GPU of its system lies behind NVLinks alone, or behind none: what counts is the host's, not the data sheet.
bool has_peer(const PlanContext& context, DeviceId gpu, bool by_nvlink);

/// May two GPUs of one system read and write each other's memory, over NVLink or over PCIe?
Gate nvlink_gate_of(const PlanContext& context, DeviceId gpu);
Gate pcie_gate_of(const PlanContext& context, DeviceId gpu);
/// The one of both that the way to the peer passes.
inline Gate peer_gate_of(const PlanContext& context, DeviceId gpu, bool by_nvlink) {
  return by_nvlink ? nvlink_gate_of(context, gpu) : pcie_gate_of(context, gpu);
}
/// May the GPUs of its system be reduced and multicast by their NVSwitches, as far as the VM decides?
Gate multicast_gate_of(const PlanContext& context, DeviceId gpu);
Gate gpudirect_gate_of(const PlanContext& context, DeviceId gpu, DeviceId hca);

/// What the VMs on both ends add to one message between their adapters: terms, and the virtual ports' limits.
void add_virtual_ports(const PlanContext& context, DeviceId from_hca, DeviceId to_hca, Route& route,
                       DeviceId from_user = {}, DeviceId to_user = {});
/// The same of one end.
void add_virtual_port(const PlanContext& context, DeviceId hca, bool is_sender, DeviceId user, Route& route);

/// A connection between two VMs of one host that does not leave the host: through the adapter's own switch, the
/// hypervisor's switch or a memory copy. False when the adapters must use the fabric.
bool add_inside_host(const PlanContext& context, DeviceId from_hca, DeviceId to_hca, Route& route,
                     DeviceId from_user = {}, DeviceId to_user = {});
/// True when add_inside_host would find a way.
bool can_stay_inside_host(const PlanContext& context, DeviceId from_hca, DeviceId to_hca);
/// What is said of two hosts, or VMs of one, that nothing joins, at the workload's place `where`.
Diagnostic no_network_path(const PlanContext& context, const SourceLocation& where, int from_host, int to_host);

/// Of all sockets of a host; k_unknown_cores where the catalogue does not say.
inline constexpr double k_unknown_cores = 1e9;
double cores_of(const PlanContext& context, int host);

/// vCPUs of all VMs of the device's host for each core, where that is above 1 and no VM has cores of its own by
/// latency sensitivity; else 1.
double vcpus_per_core(const PlanContext& context, DeviceId device);

/// Capacity of a software adapter in bytes/s: one worker pays for every byte and packet.
double software_port_rate(const PlanContext& context, const Virtualization& guest, NicMode nic);

/// Least time between messages that the VM's adapter imposes; zero when it adds nothing.
Duration virtual_message_gap(const PlanContext& context, DeviceId hca);

/// Terms of starting work on a GPU: calls to a remote GPU, waiting for an overcommitted core.
std::vector<Term> virtual_launch_terms(const PlanContext& context, DeviceId gpu);

/// A copy of `size` bytes between the client VM and its remote GPU: one call and the data over the VM's adapter. Empty
/// for GPUs of the host.
std::vector<Term> remote_copy_terms(const PlanContext& context, DeviceId gpu, DeviceId hca, Bytes size);

/// How the vGPU scheduler of the host hands out the GPU's time, and the other vGPUs that compute all the time. Empty
/// when nothing is shared; faults when the profile does not fit.
Result<std::optional<GpuSharing>> vgpu_sharing(const PlanContext& context, DeviceId gpu, Duration kernel);

/// What the way a VM gets its GPU adds to a step of `compute` on bare metal: tax, time slices of others, remote calls.
std::vector<Term> virtual_compute_terms(const PlanContext& context, DeviceId gpu, Duration compute);

/// Lines for a result: what the hosts wear, and what follows from it.
std::vector<GivenUsed> virtual_settings(const PlanContext& context, const std::vector<DeviceId>& gpus);
std::vector<std::string> virtual_assumptions(const PlanContext& context, const std::vector<int>& hosts);

}  // namespace fabricast::models
