// SPDX-License-Identifier: Apache-2.0
// GPU by GPU: does the hypervisor's release, the vGPU software and the card allow what a VM gets?
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <set>

#include "check/sources.hpp"
#include "check/vm_setup.hpp"

namespace fabricast::check {

namespace {

constexpr const char* k_fabric_manager_guide =
    "NVIDIA Fabric Manager guide DU-09883, full passthrough and shared NVSwitch virtualization";

class GpuRules : VmRules {
 public:
  using VmRules::VmRules;

  void run() {
    for (vm_ = 0; vm_ < vms_.size(); ++vm_) {
      std::set<std::pair<std::string, GpuMode>> seen;
      for (const auto& gpu : vms_[vm_].gpus) {
        if (gpu.mode == GpuMode::vgpu) check_unified_memory(gpu);
        if (!seen.insert({gpu.type, gpu.mode}).second) continue;
        if (gpu.mode == GpuMode::vgpu) check_vgpu(gpu);
        if (gpu.mode == GpuMode::mig) check_mig(gpu);
      }
      check_several();
      check_server();
      check_software();
    }
  }

 private:
  [[nodiscard]] const Parameter* of(const HeldGpu& gpu, const char* what) const {
    return cell(host_, fmt::format("{}.{}", gpu_model(gpu.type), what));
  }

  void check_vgpu(const HeldGpu& gpu) {
    if (const auto* has = of(gpu, "vgpu"); has != nullptr && has->value == 0) {
      add(severity_of(*has), "mode", fmt::format("GPU {} has no vGPU", gpu.type),
          "hand it over by passthrough, or take a GPU that has: fabricast list profiles", has->source);
      return;
    }
    check_known(gpu, "vgpu");
    check_hypervisor();
    check_host_release(gpu);
    check_release(gpu);
    if (guest().guest_system == GuestSystem::windows && guest().has_unified_memory)
      add(Severity::error, "unified_memory", "unified memory of a vGPU needs a Linux guest",
          "set unified_memory: off, or guest_os: linux", "NVIDIA AI Enterprise 8 notes, unified memory");
  }

  void check_unified_memory(const HeldGpu& gpu) {
    const bool is_part = !gpu.profile.empty() && !is_whole_profile(host_, gpu.type, gpu.profile);
    if (guest().has_unified_memory && is_part)
      add(Severity::error, "unified_memory",
          fmt::format("unified memory needs a vGPU with the whole framebuffer, {} is a part of a {}", gpu.profile,
                      gpu.type),
          "set unified_memory: off, or take the profile of the whole GPU",
          "NVIDIA AI Enterprise 8 notes, unified memory: one vGPU per GPU");
  }

  void check_known(const HeldGpu& gpu, const char* what) {
    if (of(gpu, what) != nullptr) return;
    add(Severity::warning, "mode",
        fmt::format("the compatibility matrix does not know {} of a {}", to_string(gpu.mode), gpu.type),
        "look into the release notes of the vGPU software", k_vgpu_guide);
  }

  void check_hypervisor() {
    const bool has_none =
        guest().hypervisor == Hypervisor::cloud_hypervisor || guest().hypervisor == Hypervisor::hyper_v;
    if (has_none)
      add(Severity::error, "hypervisor", fmt::format("no vGPU software for {}", to_string(guest().hypervisor)),
          "take esxi, kvm or xen, or passthrough", "NVIDIA vGPU documentation, supported hypervisors");
  }

  /// ESXi's release, of time-sliced and MIG-backed vGPUs.
  void check_host_release(const HeldGpu& gpu) {
    const int capability = static_cast<int>(host_.parameters.value_or(gpu.type, "compute_capability", 70));
    const auto* sr_iov = cell(host_, "esxi_sr_iov_vgpu_first");
    const auto* first = of(gpu, "esxi_vgpu_first");
    const bool is_known = first != nullptr && severity_of(*first) == Severity::error;
    if (is_too_old(first) && (is_known || capability < 80 || !is_too_old(sr_iov))) {
      add(severity_of(*first), "version",
          fmt::format("vGPU of a {} needs ESXi {}, this is {}", gpu.type, release_words(first->value),
                      to_string(guest().version)),
          "upgrade the host, or hand the GPU over by passthrough", first->source);
    } else if (capability >= 80 && is_too_old(sr_iov)) {
      add(severity_of(*sr_iov), "version",
          fmt::format("vGPU of an Ampere or later GPU ({}) needs ESXi {}, this is {}", gpu.type,
                      release_words(sr_iov->value), to_string(guest().version)),
          "upgrade the host, or hand the GPU over by passthrough", sr_iov->source);
    }
  }

  void check_release(const HeldGpu& gpu) {
    if (!guest().vgpu_release) return;
    const int release = release_code(*guest().vgpu_release);
    const auto* first = of(gpu, "vgpu_first");
    const auto* last = of(gpu, "vgpu_last");
    if (first != nullptr && release < first->value)
      add(severity_of(*first), "vgpu_release",
          fmt::format("vGPU {} does not know the {}, which came with {}", to_string(*guest().vgpu_release), gpu.type,
                      release_words(first->value)),
          fmt::format("install vGPU {} or later", release_words(first->value)), first->source);
    if (last != nullptr && release > last->value)
      add(severity_of(*last), "vgpu_release",
          fmt::format("vGPU {} has dropped the {}; {} was the last", to_string(*guest().vgpu_release), gpu.type,
                      std::floor(last->value / 100)),
          fmt::format("stay with vGPU {:.0f}, or use passthrough", std::floor(last->value / 100)), last->source);
  }

  void check_mig(const HeldGpu& gpu) {
    if (const auto* has = of(gpu, "mig"); has != nullptr && has->value == 0) {
      add(severity_of(*has), "mode", fmt::format("GPU {} has no MIG", gpu.type),
          "use vgpu, or an A100, A30 or later GPU", has->source);
      return;
    }
    check_known(gpu, "mig");
    const auto* seven = cell(host_, "esxi_sr_iov_vgpu_first");
    const auto* first = cell(host_, "esxi_mig_vgpu_first");
    if (is_too_old(seven)) {
      add(Severity::error, "version",
          fmt::format("MIG-backed vGPU needs ESXi 7.0, this is {}", to_string(guest().version)),
          "upgrade the host, or pass the whole GPU through and split it in the guest", seven->source);
    } else if (is_too_old(first)) {
      add(Severity::warning, "version",
          fmt::format("MIG-backed vGPU came with ESXi {}, this is {}", release_words(first->value),
                      to_string(guest().version)),
          "upgrade the host", first->source);
    }
    if (is_too_old(seven)) return;
    check_host_release(gpu);
    check_release(gpu);
  }

  /// Several vGPUs of one VM.
  void check_several() {
    const auto& vm = vms_[vm_];
    std::vector<const HeldGpu*> all;
    for (const auto& gpu : vm.gpus)
      if (gpu.mode == GpuMode::vgpu || (gpu.mode == GpuMode::mig && is_esxi())) all.push_back(&gpu);
    if (all.size() < 2) return;
    const auto* on_esxi = of(*all.front(), "esxi_several");
    if (is_esxi() && on_esxi != nullptr && on_esxi->value == 0)
      add(severity_of(*on_esxi), "devices",
          fmt::format("several vGPUs of {} in one VM need KVM, this is esxi", all.front()->type),
          "give each VM one vGPU, or take hypervisor: kvm", on_esxi->source);
    check_series(all);
    const bool has_unlike =
        std::ranges::any_of(all, [&](const HeldGpu* gpu) { return gpu->type != all.front()->type; });
    if (has_unlike)
      add(Severity::error, "devices", "vGPUs of unlike boards in one VM", "take vGPUs of one board",
          std::string(k_vgpu_guide) + ", several vGPUs of a VM: same board and series");
    const auto* needed = cell(host_, "several_vgpus_hardware_version");
    if (is_esxi() && needed != nullptr && guest().hardware_version > 0 && guest().hardware_version < needed->value)
      add(Severity::error, "hardware_version",
          fmt::format("several vGPUs need hardware version {:.0f}, the VM has {}", needed->value,
                      guest().hardware_version),
          fmt::format("upgrade the VM to hardware version {:.0f}", needed->value), needed->source);
    if (is_esxi() && release_code(guest().version) < 700) {
      const bool has_part = std::ranges::any_of(
          all, [](const HeldGpu* gpu) { return !gpu->profile.empty() && gpu->mode == GpuMode::vgpu; });
      if (has_part && !is_whole(all))
        add(Severity::error, "devices",
            "several vGPUs of a VM need profiles with the whole framebuffer before ESXi 7.0",
            "take whole-GPU profiles, one vGPU, or ESXi 7.0",
            "VMware documentation G-C597DC2A, several vGPUs from 6.7 U3");
    }
  }

  /// The letter behind the size of a time-sliced profile: C, Q, A or B.
  void check_series(const std::vector<const HeldGpu*>& all) {
    std::set<char> series;
    for (const auto* gpu : all)
      if (gpu->mode == GpuMode::vgpu && !gpu->profile.empty())
        series.insert(static_cast<char>(std::tolower(static_cast<unsigned char>(gpu->profile.back()))));
    if (series.size() > 1)
      add(Severity::error, "devices", "vGPUs of unlike series in one VM", "take vGPUs of one series, all C or all Q",
          std::string(k_vgpu_guide) + ", several vGPUs of a VM: same board and series");
  }

  /// What NVIDIA does not support on servers as a whole.
  void check_server() {
    const auto has = [&](GpuMode mode) { return std::ranges::count(vms_[vm_].gpus, mode, &HeldGpu::mode) > 0; };
    const auto& server = host_.group.host;
    if (server.type.starts_with("dgx-") && has(GpuMode::vgpu))
      add(Severity::error, is_described() ? "devices" : "mode",
          fmt::format("no vGPU software for {}: DGX servers take bare metal and passthrough", server.type),
          "hand the GPUs over by passthrough, or take an HGX server of another vendor",
          "NVIDIA AI Enterprise 2.2 release notes: no vGPU on DGX");
    if (has(GpuMode::passthrough)) check_nvswitches();
  }

  /// GPUs behind NVSwitches: not on vSphere; elsewhere all of them to one VM with the switches, or partitions of 1, 2,
  /// 4, 8 (16) GPUs while a service VM or the host keeps the switches.
  void check_nvswitches() {
    const auto& server = host_.group.host;
    const auto is_of = [](DeviceKind kind) {
      return [kind](const DeviceSpec& device) { return device.kind == kind && device.card.empty(); };
    };
    if (std::ranges::none_of(server.devices, is_of(DeviceKind::nvswitch))) return;
    const auto* vsphere = cell(host_, "nvswitch.esxi_passthrough");
    if (is_esxi()) {
      if (vsphere == nullptr || vsphere->value != 0) return;
      const bool is_written = guest().locations.contains("hypervisor") || guest().locations.contains("version");
      add(is_written ? severity_of(*vsphere) : Severity::warning, is_described() ? "devices" : "mode",
          fmt::format("vSphere has no supported passthrough of GPUs behind NVSwitches{}",
                      is_written ? "" : "; esxi is taken because no hypervisor is named"),
          "take vgpu with device groups (ESXi 8.0 U1), or hypervisor: kvm", vsphere->source);
      return;
    }
    const auto whole = static_cast<std::size_t>(std::ranges::count_if(server.devices, is_of(DeviceKind::gpu)));
    const auto own = static_cast<std::size_t>(std::ranges::count(vms_[vm_].gpus, GpuMode::passthrough, &HeldGpu::mode));
    const auto written = guest().locations.find("nvswitches");
    if (own < whole && written != guest().locations.end() && guest().nvswitches == NvswitchMode::passthrough)
      add(Severity::error, "nvswitches",
          fmt::format("the VM holds the NVSwitches and {} of {} GPUs behind them", own, whole),
          "give the VM all GPUs, or write nvswitches: shared", k_fabric_manager_guide);
    else if (own != whole && !std::has_single_bit(own))
      add(Severity::warning, is_described() ? "devices" : "vms_per_host",
          fmt::format(
              "{} GPUs behind NVSwitches in one VM: a partition of the switches has 1, 2, 4 or all of them, and "
              "NVLink joins those of one partition only; the forecast joins all of the VM's",
              own),
          fmt::format("give the VM {} or {} GPUs", std::bit_floor(own), std::min(whole, std::bit_ceil(own))),
          k_fabric_manager_guide);
  }

  [[nodiscard]] bool is_whole(const std::vector<const HeldGpu*>& all) const {
    return std::ranges::all_of(all, [&](const HeldGpu* gpu) {
      return gpu->profile.empty() || is_whole_profile(host_, gpu->type, gpu->profile);
    });
  }

  void check_software() {
    const bool has_device = !vms_[vm_].gpus.empty() || !vms_[vm_].nics.empty();
    if (has_device && is_esxi() && guest().version < ReleaseNumber{6, 0, 0})
      add(Severity::warning, "version",
          fmt::format("ESXi {} is older than the compatibility matrix", to_string(guest().version)),
          "rules from 6.0 on are known", "configuration maximums");
    else if (is_esxi() && !is_release(guest().version))
      add(Severity::error, "version", fmt::format("there is no ESXi {}", to_string(guest().version)),
          "write a release like \"6.7 U3\", \"7.0 U3\", \"8.0 U2\"", "Broadcom KB 316595, build numbers of ESXi");
    else if (is_esxi() && guest().version > ReleaseNumber{9, 0, 99})
      add(Severity::warning, "version",
          fmt::format("ESXi {} is newer than the compatibility matrix: the rules of 9.0 are taken",
                      to_string(guest().version)),
          "check its release notes", "configuration maximums");
    const auto written = guest().locations.find("version");
    if (!is_esxi() && written != guest().locations.end())
      add(Severity::warning, "version",
          fmt::format("version is the release of ESXi, {} reads none", to_string(guest().hypervisor)),
          "remove it, or write hypervisor: esxi", "docs/FORMATS.md, virtualization");
  }

  /// 6.0, 6.5, 6.7, 7.0 and 8.0 with updates to 3; of what comes after 9.0 nothing is known.
  static bool is_release(const ReleaseNumber& version) {
    if (version >= ReleaseNumber{9, 0, 0}) return true;
    static const std::set<std::pair<int, int>> lines{{6, 0}, {6, 5}, {6, 7}, {7, 0}, {8, 0}};
    return lines.contains({version.major, version.minor}) && version.update <= 3;
  }
};

}  // namespace

void gpu_rules(const VirtualHost& host, const std::vector<VmSetup>& vms, std::vector<VmFinding>& found) {
  GpuRules(host, vms, found).run();
}

}  // namespace fabricast::check
