// SPDX-License-Identifier: Apache-2.0
// What a guest may do: peer access, GPUDirect RDMA, sharing (operations of a VM: operations.cpp). Every closed gate
// says why. Sources: VMware's guides on GPUDirect RDMA (ESXi 6.7 with pciPassthru.allowP2P) and on GPUs in vSphere 6.7;
// NVIDIA's vGPU documentation (peer access only over NVLink between whole-GPU vGPUs, before Hopper without unified
// memory; none with MIG; multicast from Hopper on between whole-GPU vGPUs with unified memory). That a VM without the
// NVSwitches has no multicast is inferred: three of ours, of 2, 4 and 8 H200, found no channels for it.
#include <fmt/format.h>

#include "virtualization/gate.hpp"

namespace fabricast {

namespace {

constexpr ReleaseNumber k_p2p_release{6, 7, 0};
constexpr ReleaseNumber k_vgpu_rdma_release{7, 0, 0};

/// Unified memory of vGPUs excludes peer access over NVLink before this compute capability.
constexpr int k_hopper = 90;

bool is_older(const Virtualization& guest, const ReleaseNumber& release) {
  return guest.hypervisor == Hypervisor::esxi && guest.version < release;
}

/// What ESXi lets two passed-through devices of a VM do, whatever the guest sees of the tree.
Gate hypervisor_gate(const Virtualization& guest) {
  if (is_older(guest, k_p2p_release))
    return closed(
        fmt::format("peer access of passed-through devices needs ESXi 6.7, this is {}", to_string(guest.version)));
  if (guest.hypervisor == Hypervisor::esxi && !guest.allow_p2p)
    return closed("pciPassthru.allowP2P is off: passed-through devices cannot reach each other");
  return {};
}

}  // namespace

bool is_tcp_only(NicMode mode) { return mode == NicMode::vmxnet3 || mode == NicMode::virtio; }
bool is_on_hypervisor_switch(NicMode mode) { return is_tcp_only(mode) || mode == NicMode::pvrdma; }
bool is_shareable(NicMode mode) { return mode != NicMode::passthrough && mode != NicMode::bare_metal; }
bool is_shareable(GpuMode mode) { return mode == GpuMode::vgpu || mode == GpuMode::mig || mode == GpuMode::remote; }

Gate peer_gate(const Virtualization& guest) {
  if (!guest.is_virtual()) return {};
  if (auto gate = hypervisor_gate(guest); !gate.is_open) return gate;
  // The driver opens peer access where the tree, or a clique it was told of, joins the GPUs.
  if (guest.hypervisor != Hypervisor::esxi && guest.guest_topology == GuestTopology::hidden)
    return closed("the guest topology is hidden: the driver does not find the switch that joins the GPUs");
  return {};
}

Gate nvlink_gate(const Virtualization& guest, GpuMode gpu, bool is_whole_gpu, int compute_capability) {
  if (!guest.is_virtual() || gpu == GpuMode::passthrough || gpu == GpuMode::bare_metal) return {};
  if (gpu == GpuMode::mig) return closed("MIG instances have no peer access");
  if (gpu == GpuMode::vgpu && !is_whole_gpu) return closed("vGPUs have peer access only with the whole framebuffer");
  if (gpu == GpuMode::vgpu && guest.guest_system == GuestSystem::windows)
    return closed("peer access of vGPUs needs a Linux guest");
  if (gpu == GpuMode::vgpu && guest.has_unified_memory && compute_capability < k_hopper)
    return closed("peer access over NVLink is off while unified memory of the vGPU is on");
  return {};
}

Gate multicast_gate(const Virtualization& guest, GpuMode gpu, bool is_whole_gpu) {
  if (!guest.is_virtual()) return {};
  if (gpu == GpuMode::mig) return closed("MIG instances have no NVLink multicast");
  if (gpu == GpuMode::remote) return closed("the GPU is in another host");
  if (gpu == GpuMode::vgpu && !is_whole_gpu)
    return closed("vGPUs have NVLink multicast only with the whole framebuffer");
  if (gpu == GpuMode::vgpu && !guest.has_unified_memory)
    return closed("NVLink multicast of vGPUs needs unified memory (virtualization.unified_memory: on)");
  if (gpu != GpuMode::passthrough) return {};
  if (guest.neighbours() > 1)
    return closed(fmt::format("{} VMs of one host share its NVSwitches", guest.neighbours()), true);
  if (guest.nvswitches == NvswitchMode::shared)
    return closed("the VM does not hold the NVSwitches (virtualization.nvswitches: shared)", true);
  return {};
}

Gate gpudirect_gate(const Virtualization& guest, GpuMode gpu, NicMode nic, bool is_whole_gpu, int compute_capability) {
  if (!guest.is_virtual()) return {};
  if (gpu == GpuMode::remote) return closed("the GPU is in another host");
  if (guest.guest_system == GuestSystem::windows) return closed("GPUDirect RDMA needs a Linux guest");
  if (is_tcp_only(nic)) return closed(fmt::format("{} carries TCP only", to_string(nic)));
  if (nic == NicMode::pvrdma) return closed("PVRDMA registers host memory only");
  if (gpu == GpuMode::vgpu && !is_whole_gpu)
    return closed("GPUDirect RDMA of a vGPU needs the profile with the whole framebuffer");
  if (gpu == GpuMode::vgpu && compute_capability < 80)
    return closed("GPUDirect RDMA of a vGPU needs an Ampere or later GPU");
  if (gpu == GpuMode::vgpu && is_older(guest, k_vgpu_rdma_release))
    return closed(fmt::format("GPUDirect RDMA of a vGPU needs ESXi 7.0, this is {}", to_string(guest.version)));
  return hypervisor_gate(guest);
}

GuestFeatures features_of(const Virtualization& guest, bool is_whole_gpu, int compute_capability) {
  GuestFeatures features;
  if (!guest.is_virtual()) {
    features.sharing = closed("bare metal");
    return features;
  }
  if (!is_shareable(guest.gpu)) features.sharing = closed("a passed-through GPU belongs to one VM");
  if (is_shareable(guest.gpu) && guest.gpu != GpuMode::remote && is_whole_gpu)
    features.sharing = closed("the profile takes the whole GPU");
  features.p2p = guest.gpu == GpuMode::passthrough ? peer_gate(guest)
                                                   : nvlink_gate(guest, guest.gpu, is_whole_gpu, compute_capability);
  if (guest.gpu == GpuMode::remote) features.p2p = closed("the GPUs are in another host");
  features.gpudirect = gpudirect_gate(guest, guest.gpu, guest.nic, is_whole_gpu, compute_capability);
  return features;
}

Bytes mmio_space(Bytes bytes) {
  Bytes space{1};
  while (space <= bytes) space = 2 * space;
  return space;
}

}  // namespace fabricast
