// SPDX-License-Identifier: Apache-2.0
// GPUs and the PCIe tree of a VM: profiles, ECC, which peer paths are open and how they run.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "check/sources.hpp"
#include "check/virtual_host.hpp"
#include "fabricast/models/virtualization.hpp"

namespace fabricast::check {

namespace {

constexpr ReleaseNumber k_ecc_release{9, 0, 0};
constexpr const char* k_p2p_guide = "VMware, GPUDirect RDMA in vSphere 6.7; NVIDIA AI Enterprise guide";

bool is_shared_gpu(const VirtualHost& host) {
  return host.guest.gpu == GpuMode::vgpu || host.guest.gpu == GpuMode::mig;
}

/// Profiles exist, and their number and sizes fit one GPU.
void check_profile_sums(const VirtualHost& host, std::vector<Finding>& found) {
  const auto& guest = host.guest;
  if (guest.profile.empty() || host.gpus().empty() || !is_shared_gpu(host) || !guest.vm_name.empty()) return;
  const auto family = models::profile_family(host.gpu_type(), host.parameters);
  if (models::gpu_profiles(family, host.parameters).empty()) return;
  const auto names = guest.profiles.empty() ? std::vector<std::string>{guest.profile} : guest.profiles;
  double framebuffers = 0;
  for (const auto& name : names) {
    const auto profile = models::find_gpu_profile(family, name, host.parameters);
    if (!profile) {
      found.push_back({Severity::error, "profile", fmt::format("GPU {} has no profile '{}'", host.gpu_type(), name),
                       "fabricast list profiles prints those of every GPU", k_vgpu_guide});
      return;
    }
    framebuffers += profile->framebuffer_gb;
    const auto gpus = static_cast<int>(host.gpus().size());
    const int vms = (guest.vms_per_host + gpus - 1) / gpus;
    const int wanted = std::max(guest.profiles.empty() ? vms : 1, 1 + guest.busy_neighbours);
    if (wanted > profile->max_instances)
      found.push_back({Severity::error, "vms_per_host",
                       fmt::format("{} vGPUs of {} on one {}, it holds {}", wanted, profile->name, host.gpu_type(),
                                   profile->max_instances),
                       "take a smaller profile, or fewer VMs per host", k_vgpu_guide});
  }
  const double memory = host.parameters.value_or(host.gpu_type(), "memory", 0) / 1073741824.0;
  if (guest.profiles.size() > 1 && framebuffers > 1.01 * memory)
    found.push_back(
        {Severity::error, "profile",
         fmt::format("profiles of {:g} GB together on GPU {} with {:g} GB", framebuffers, host.gpu_type(), memory),
         "take smaller profiles", k_vgpu_guide});
}

void check_profiles(const VirtualHost& host, std::vector<Finding>& found) {
  const auto& guest = host.guest;
  if (host.gpus().empty() || !is_shared_gpu(host)) return;
  const std::set<std::string> distinct(guest.profiles.begin(), guest.profiles.end());
  if (distinct.size() > 1 && guest.gpu == GpuMode::vgpu && guest.scheduler == SharePolicy::fixed_share)
    found.push_back({Severity::error, "scheduler", "mixed vGPU sizes do not work with the fixed share scheduler",
                     "take one profile, or scheduler: equal_share", k_vgpu_guide});
  if (guest.gpu == GpuMode::vgpu && guest.has_ecc && guest.vgpu_release && *guest.vgpu_release < k_ecc_release)
    found.push_back({Severity::error, "ecc",
                     fmt::format("vGPU {} needs ECC switched off", to_string(*guest.vgpu_release)),
                     "switch ECC off (ecc: off), or install vGPU 9.0 or later", "VMware, GPUs in vSphere 6.7, 2019"});
}

void check_p2p_settings(const VirtualHost& host, std::vector<Finding>& found) {
  const auto& guest = host.guest;
  const auto gate = peer_gate(guest);
  const bool is_asked = guest.locations.count("allow_p2p") > 0 && guest.allow_p2p;
  const bool is_too_old = guest.hypervisor == Hypervisor::esxi && guest.version < ReleaseNumber{6, 7, 0};
  if (is_asked && is_too_old) {
    found.push_back({Severity::error, "allow_p2p", gate.reason, "upgrade the hosts to ESXi 6.7 or later", k_p2p_guide});
    return;
  }
  // What the guest does not see keeps the driver from pairs of GPUs on PCIe, what ESXi forbids adapters too.
  const bool has_pair = host.gpus().size() > 1 && !host.has_nvlink();
  const bool has_adapter = guest.hypervisor == Hypervisor::esxi && !host.gpus().empty() && !host.hcas().empty();
  if (!gate.is_open && guest.gpu == GpuMode::passthrough && (has_pair || has_adapter))
    found.push_back({Severity::warning, is_too_old ? "version" : "allow_p2p",
                     fmt::format("{}: device messages are staged through host memory", gate.reason),
                     is_too_old                             ? "upgrade the hosts to ESXi 6.7 or later"
                     : guest.hypervisor == Hypervisor::esxi ? "set pciPassthru.allowP2P (allow_p2p: on)"
                                                            : "show the tree, or inject it by NCCL_TOPO_FILE",
                     k_p2p_guide});
}

void check_peer_paths(const VirtualHost& host, std::vector<Finding>& found) {
  const auto& guest = host.guest;
  const bool has_peers = guest.gpu != GpuMode::remote && !host.gpus().empty() && !host.hcas().empty() &&
                         (guest.nic == NicMode::passthrough || guest.nic == NicMode::sr_iov);
  if (!has_peers) return;
  if (guest.guest_topology == GuestTopology::hidden)
    found.push_back({Severity::warning, "guest_topology",
                     "the guest takes all devices for equally far: NCCL uses neither the nearest adapter nor GPUDirect "
                     "RDMA",
                     "show the tree in the VM, or inject it (guest_topology: injected, NCCL_TOPO_FILE)",
                     "nccl issue 1674"});
  if (guest.gpu != GpuMode::passthrough) return;
  if (guest.acs == AcsMode::redirect) found.push_back(redirect_finding());
  if (guest.acs == AcsMode::direct_translated && !guest.has_ats)
    found.push_back({Severity::warning, "ats",
                     "without ATS the root complex translates every peer request: none passes the switch directly",
                     "set ATS_ENABLED on the adapter and atsSupport on the host, then power-cycle the host (ats: on)",
                     k_p2p_guide});
  std::vector<std::string> far;
  PathOptions cabled;
  cabled.may_use_nvlink = false;
  cabled.as_cabled = true;
  for (const auto gpu : host.gpus()) {
    const bool has_near = [&] {
      for (const auto hca : host.hcas()) {
        const auto path = host.topology.path_in_host(gpu, hca, cabled);
        if (path && path->root_complexes.empty()) return true;
      }
      return false;
    }();
    if (!has_near) far.push_back(host.topology.device(gpu).name.substr(host.topology.host_name(host.host).size() + 1));
  }
  if (far.empty()) return;
  std::string names = far.front();
  for (std::size_t i = 1; i < far.size() && i < 4; ++i) names += ", " + far[i];
  if (far.size() > 4) names += ", ...";
  found.push_back({Severity::warning, "mode",
                   fmt::format("no PCIe switch joins {} with an adapter: peer traffic passes the root complex", names),
                   "put GPU and adapter below one switch", k_p2p_guide});
}

}  // namespace

Finding redirect_finding() {
  return {Severity::warning, "acs",
          "ACS redirects peer requests up to the root complex, where they share the uplink of the switch",
          "switch ACS off (bare metal), or set DirectTrans+ on the switch ports (acs: direct_translated, "
          "RelaxACSforP2P) and ATS on",
          "nccl issues 700 and 949; " + std::string(k_p2p_guide)};
}

std::vector<Finding> device_findings(const VirtualHost& host) {
  std::vector<Finding> found;
  check_profile_sums(host, found);
  check_profiles(host, found);
  check_p2p_settings(host, found);
  check_peer_paths(host, found);
  return found;
}

}  // namespace fabricast::check
