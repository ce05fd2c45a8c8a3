// SPDX-License-Identifier: Apache-2.0
// What one word stands for: the devices' modes, and every other setting as the vendors' guides recommend.
#include "fabricast/virtualization.hpp"

namespace fabricast {

namespace {

GpuMode gpu_of(VirtualMode mode) {
  switch (mode) {
    case VirtualMode::bare_metal:
      return GpuMode::bare_metal;
    case VirtualMode::vgpu:
      return GpuMode::vgpu;
    case VirtualMode::mig:
      return GpuMode::mig;
    case VirtualMode::remote_gpu:
      return GpuMode::remote;
    default:
      return GpuMode::passthrough;
  }
}

NicMode nic_of(VirtualMode mode, Hypervisor hypervisor) {
  switch (mode) {
    case VirtualMode::bare_metal:
      return NicMode::bare_metal;
    case VirtualMode::passthrough:
      return NicMode::passthrough;
    case VirtualMode::pvrdma:
      return NicMode::pvrdma;
    case VirtualMode::tcp:
    case VirtualMode::remote_gpu:
      return hypervisor == Hypervisor::esxi ? NicMode::vmxnet3 : NicMode::virtio;
    case VirtualMode::sr_iov:
    case VirtualMode::vgpu:
    case VirtualMode::mig:
      return NicMode::sr_iov;
  }
  return NicMode::bare_metal;
}

}  // namespace

Virtualization virtualization_of(VirtualMode mode, Hypervisor hypervisor) {
  Virtualization guest;
  guest.mode = mode;
  if (mode == VirtualMode::bare_metal) return guest;
  guest.hypervisor = hypervisor;
  if (hypervisor == Hypervisor::esxi) guest.version = {8, 0, 0};
  // Published plateaus of KVM and Cloud Hypervisor, with ACS and ATS set as the guide says, end at one limit per
  // socket.
  if (hypervisor == Hypervisor::kvm || hypervisor == Hypervisor::cloud_hypervisor)
    guest.translation = PeerTranslation::shared;
  // ESXi and KVM give a guest one flat bus unless somebody builds it a tree (NVIDIA AI Enterprise guide; QEMU's
  // pxb-pcie and x-nv-gpudirect-clique); the others are taken to do the same.
  guest.guest_topology = GuestTopology::hidden;
  guest.gpu = gpu_of(mode);
  guest.nic = nic_of(mode, hypervisor);
  return guest;
}

GpuMode Virtualization::gpu_mode(const std::string& device) const {
  const auto it = gpu_by_name.find(device);
  return it == gpu_by_name.end() ? gpu : it->second;
}

NicMode Virtualization::nic_mode(const std::string& device) const {
  const auto it = nic_by_name.find(device);
  return it == nic_by_name.end() ? nic : it->second;
}

const VmDevice* Virtualization::held(const std::string& device) const {
  for (const auto& one : devices)
    if (one.device == device) return &one;
  return nullptr;
}

const std::string& Virtualization::profile_of(const std::string& device) const {
  const auto* own = held(device);
  return own == nullptr ? profile : own->profile;
}

std::optional<Bandwidth> Virtualization::rate_limit_of(const std::string& device) const {
  const auto* own = held(device);
  return own == nullptr ? rate_limit : own->rate_limit;
}

int Virtualization::busy_neighbours_of(const std::string& device) const {
  const auto it = busy_by_name.find(device);
  return busy_neighbours + (it == busy_by_name.end() ? 0 : it->second);
}

bool Virtualization::redirects_peers() const {
  if (!is_virtual()) return acs == AcsMode::redirect;
  return acs == AcsMode::redirect || (acs == AcsMode::direct_translated && !has_ats);
}

}  // namespace fabricast
