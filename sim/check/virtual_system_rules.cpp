// SPDX-License-Identifier: Apache-2.0
// What a VM needs before it powers on with its devices, and features a mode cannot keep. Sources are in the findings.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/sources.hpp"
#include "check/vm_setup.hpp"

namespace fabricast::check {

namespace {

void check_memory(const VirtualHost& host, std::vector<Finding>& found) {
  const auto& guest = host.guest;
  const bool has_vgpu = guest.gpu == GpuMode::vgpu && !host.gpus().empty();
  if (guest.hypervisor == Hypervisor::esxi && guest.reserved_share < 1 && (host.is_passed_through() || has_vgpu))
    found.push_back({Severity::error, "memory_reservation",
                     "devices write into guest memory by DMA, the memory of the VM is not fully reserved",
                     "reserve all guest memory (memory_reservation: full)", k_gpu_guide});
  if (guest.latency_sensitivity == LatencySensitivity::high && (guest.reserved_share < 1 || !guest.is_pinned))
    found.push_back({Severity::error, "latency_sensitivity",
                     "latency sensitivity high needs a core for each vCPU and full reservation",
                     "set pinning: on and memory_reservation: full, or latency_sensitivity: normal",
                     "VMware, latency-sensitive workloads in vSphere"});
  if (!guest.has_huge_pages)
    found.push_back({Severity::warning, "huge_pages",
                     "guest memory in 4 KiB pages: address translation limits each adapter to 20 GB/s",
                     "back the VM with huge pages", "Farshin et al., PeerJ Computer Science 2023"});
  if (!guest.is_pinned && guest.latency_sensitivity == LatencySensitivity::normal && host.is_passed_through())
    found.push_back({Severity::warning, "pinning", "vCPUs without cores of their own: latencies vary with the load",
                     "pin the vCPUs (pinning: on)", "NVIDIA AI Enterprise guide"});
  if (guest.is_numa_aligned || host.group.host.num_sockets < 2) return;
  found.push_back({Severity::warning, "numa",
                   "the VM's memory and devices may be on different sockets: copies cross the sockets",
                   "one VM per socket with its own GPUs and adapters (numa: on)", "NVIDIA AI Enterprise guide"});
}

void check_remote(const VirtualHost& host, std::vector<Finding>& found) {
  const auto& guest = host.guest;
  if (guest.gpu != GpuMode::remote || host.gpus().empty() || !guest.vm_name.empty()) return;
  const double whole = host.parameters.value_or(host.gpu_type(), "memory", 0);
  const double limit = guest.gpu_memory ? static_cast<double>(guest.gpu_memory->value) : whole * guest.gpu_share;
  const auto shown = [](double bytes) { return to_string(Bytes{static_cast<std::int64_t>(bytes)}); };
  if (limit > whole)
    found.push_back({Severity::error, "gpu_memory",
                     fmt::format("{} asked of GPU {} with {}", shown(limit), host.gpu_type(), shown(whole)),
                     "lower gpu_memory", "Bitfusion FlexDirect guide"});
  if (guest.memory && static_cast<double>(guest.memory->value) < limit)
    found.push_back({Severity::error, "memory",
                     fmt::format("a VM of {} shadows {} of remote GPU memory", to_string(*guest.memory), shown(limit)),
                     "give the VM at least as much memory, or lower gpu_memory", k_gpu_guide});
}

void check_processors(const VirtualHost& host, std::vector<Finding>& found) {
  const auto& guest = host.guest;
  if (!guest.vcpus || !guest.vm_name.empty()) return;
  const double cores = host.group.host.num_sockets * host.parameters.value_or(host.group.host.processor, "cores", 1e9);
  const double wanted = static_cast<double>(guest.vms_per_host) * *guest.vcpus;
  if (wanted <= cores) return;
  const bool is_high = guest.latency_sensitivity == LatencySensitivity::high;
  found.push_back({is_high ? Severity::error : Severity::warning, "vcpus",
                   fmt::format("{} VMs with {} vCPUs on {:.0f} cores: {}", guest.vms_per_host, *guest.vcpus, cores,
                               is_high ? "latency sensitivity high needs a core for each" : "vCPUs wait for a core"),
                   "lower vms_per_host or vcpus", "VMware, latency-sensitive workloads in vSphere"});
}

void check_dealing(const VirtualHost& host, std::vector<Finding>& found) {
  const auto& guest = host.guest;
  const auto gpus = static_cast<int>(host.gpus().size());
  const auto hcas = static_cast<int>(host.hcas().size());
  if (guest.gpu == GpuMode::passthrough && gpus > 0 && guest.vms_per_host > gpus)
    found.push_back(
        {Severity::error, "vms_per_host",
         fmt::format("{} VMs share {} passed-through GPUs; each belongs to one VM", guest.vms_per_host, gpus),
         "use vgpu or mig, or fewer VMs per host", k_gpu_guide});
  if (guest.nic == NicMode::passthrough && hcas > 0 && guest.vms_per_host > hcas)
    found.push_back({Severity::error, "vms_per_host",
                     fmt::format("{} VMs share {} passed-through adapter{}; each belongs to one VM", guest.vms_per_host,
                                 hcas, hcas == 1 ? "" : "s"),
                     "use sr-iov, pvrdma or tcp for the adapters, or fewer VMs per host", k_gpu_guide});
  if (guest.nic == NicMode::pvrdma && guest.hypervisor != Hypervisor::esxi && guest.hypervisor != Hypervisor::kvm)
    found.push_back({Severity::error, "nic", fmt::format("{} has no PVRDMA adapter", to_string(guest.hypervisor)),
                     "take esxi, or sr-iov", "VMware and QEMU documentation of PVRDMA"});
  const auto* first = cell(host, "pvrdma_first");
  if (guest.nic == NicMode::pvrdma && guest.hypervisor == Hypervisor::esxi && first != nullptr &&
      release_code(guest.version) < first->value)
    found.push_back(
        {Severity::error, "version",
         fmt::format("PVRDMA needs ESXi {}, this is {}", release_words(first->value), to_string(guest.version)),
         "upgrade the host", first->source});
}

void check_mtu(const VirtualHost& host, std::vector<Finding>& found) {
  const auto& guest = host.guest;
  const bool is_remote = guest.gpu == GpuMode::remote;
  if (!is_tcp_only(guest.nic) || host.hcas().empty()) return;
  if (is_remote && guest.mtu < 8192)
    found.push_back(
        {Severity::warning, "mtu",
         fmt::format("MTU {} on the way to remote GPUs: below 4 KB on servers and 8 KB on clients is marginal",
                     guest.mtu),
         "set mtu: 9000 on both ends and on the switches", "Bitfusion FlexDirect health check"});
  if (!is_remote && guest.mtu < 4096)
    found.push_back({Severity::warning, "mtu",
                     fmt::format("MTU {} on a software adapter: each packet costs processor time", guest.mtu),
                     "set mtu: 9000 on both ends and on the switches", "docs/MODELS.md, virtual ports"});
}

}  // namespace

std::vector<Finding> system_findings(const VirtualHost& host) {
  std::vector<Finding> found;
  check_memory(host, found);
  check_remote(host, found);
  check_processors(host, found);
  check_dealing(host, found);
  check_mtu(host, found);
  return found;
}

}  // namespace fabricast::check
