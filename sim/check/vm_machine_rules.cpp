// SPDX-License-Identifier: Apache-2.0
// A VM as ESXi's release limits it, and all VMs of a machine against what it has: memory, MMIO space, cores, features
// that are required. MMIO: the smallest power of two above the sum of the windows of the VM's own cards.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "check/sources.hpp"
#include "check/vm_setup.hpp"

namespace fabricast::check {

namespace {

constexpr const char* k_vsphere_only = "it is a feature of vSphere";

constexpr double k_large_bar = 16.0 * 1073741824.0;
constexpr double k_gib = 1073741824.0;
constexpr double k_large_vgpu_bar = 64.0 * k_gib;
constexpr double k_large_memory = 32.0 * k_gib;

class MachineRules : VmRules {
 public:
  using VmRules::VmRules;

  void run() {
    for (vm_ = 0; vm_ < vms_.size(); ++vm_) {
      check_release();
      check_mmio();
      check_vgpu_mmio();
      check_needs();
      check_numa();
      check_remote_memory();
      check_dynamic();
    }
    vm_ = vms_.size() - 1;
    check_memory();
    vm_ = vms_.size() - 1;
    check_cores();
  }

 private:
  /// `esxi.<release>.<what>` of the newest release that is not newer than the host's.
  [[nodiscard]] const Parameter* limit(const char* what) const {
    const Parameter* best = nullptr;
    for (const int release : {600, 650, 670, 672, 673, 700, 701, 702, 800, 801, 802, 900}) {
      const auto* one = host_.parameters.find(fmt::format("esxi.{}.{}", release, what));
      if (one != nullptr && release_code(guest().version) >= release) best = one;
    }
    return best;
  }

  void check_release() {
    if (!is_esxi()) {
      if (guest().hardware_version > 0)
        add(Severity::error, "hardware_version",
            fmt::format("{} has no hardware versions", to_string(guest().hypervisor)), "remove hardware_version",
            "VMware documentation, virtual hardware versions");
      return;
    }
    const auto most = [&](const char* what, double wanted, const char* key, auto words, const char* fix) {
      const auto* one = limit(what);
      if (one != nullptr && wanted > one->value) add(severity_of(*one), key, words(one->value), fix, one->source);
    };
    const auto release = to_string(guest().version);
    most(
        "hardware_version", guest().hardware_version, "hardware_version",
        [&](double value) {
          return fmt::format("hardware version {}, ESXi {} has up to {:.0f}", guest().hardware_version, release, value);
        },
        "lower hardware_version, or upgrade the host");
    if (guest().memory)
      most(
          "memory_gb", static_cast<double>(guest().memory->value) / k_gib, "memory",
          [&](double value) {
            return fmt::format("a VM of {}, ESXi {} allows {:.0f} GB", to_string(*guest().memory), release, value);
          },
          "give the VM less memory");
    if (guest().vcpus)
      most(
          "vcpus", *guest().vcpus, "vcpus",
          [&](double value) { return fmt::format("{} vCPUs, ESXi {} allows {:.0f}", *guest().vcpus, release, value); },
          "give the VM fewer vCPUs");
    check_devices(release);
  }

  void check_devices(const std::string& release) {
    int devices = 0;
    int vgpus = 0;
    for (const auto& gpu : vms_[vm_].gpus) {
      devices += gpu.mode == GpuMode::passthrough ? 1 : 0;
      vgpus += gpu.mode == GpuMode::vgpu || gpu.mode == GpuMode::mig ? 1 : 0;
    }
    for (const auto& nic : vms_[vm_].nics) {
      if (nic.mode == NicMode::passthrough) ++devices;
      if (nic.mode == NicMode::sr_iov) devices += nic.functions;
    }
    const char* key = is_described() ? "devices" : "vms_per_host";
    const auto* one = limit("passthrough_devices");
    if (one != nullptr && devices > one->value)
      add(severity_of(*one), key,
          fmt::format("a VM gets {} passed-through devices, ESXi {} allows {:.0f}", devices, release, one->value),
          "hand fewer devices to each VM", one->source);
    one = limit("vgpus");
    if (one != nullptr && vgpus > one->value)
      add(severity_of(*one), key, fmt::format("a VM gets {} vGPUs, ESXi {} allows {:.0f}", vgpus, release, one->value),
          "use more VMs per host, or a later release", one->source);
  }

  void check_mmio() {
    double bars = 0;
    double largest = 0;
    std::string type;
    std::map<std::string, int> cards;
    for (const auto& gpu : vms_[vm_].gpus) {
      if (gpu.mode != GpuMode::passthrough) continue;
      const double bar = host_.parameters.value_or(gpu.type, "bar1", 0);
      bars += bar;
      ++cards[gpu.type];
      if (bar > largest) type = gpu.type;
      largest = std::max(largest, bar);
    }
    if (largest < k_large_bar || is_reported_) return;
    const auto before = found_.size();
    check_space(bars, type, cards);
    if (!guest().has_efi)
      add(Severity::error, "efi", fmt::format("a VM that boots by BIOS cannot map the BARs of GPU {}", type),
          "boot the VM by EFI (efi: on)", k_gpu_guide);
    if (!guest().has_above_4g_decoding)
      add(Severity::error, "above_4g_decoding",
          fmt::format("the BIOS of the host does not place the BARs of GPU {} above 4 GB", type),
          "switch on above-4G decoding in the BIOS of the host", k_gpu_guide);
    is_reported_ = !is_described() && found_.size() > before;
  }

  void check_space(double bars, const std::string& type, const std::map<std::string, int>& cards) {
    const auto sum = Bytes{static_cast<std::int64_t>(bars)};
    const auto needed = mmio_space(sum);
    std::string words;
    for (const auto& [one, count] : cards) words += fmt::format("{}{} x {}", words.empty() ? "" : " and ", count, one);
    if (!guest().uses_64bit_mmio) {
      add(Severity::error, "mmio",
          fmt::format("GPU {} maps {}, the VM has no 64-bit MMIO space", type,
                      to_string(Bytes{static_cast<std::int64_t>(host_.parameters.value_or(type, "bar1", 0))})),
          "set pciPassthru.use64bitMMIO (mmio: {use_64bit: on})", k_gpu_guide);
    } else if (guest().mmio_size && *guest().mmio_size < needed) {
      add(Severity::error, "mmio",
          fmt::format(
              "{} need {} of 64-bit MMIO space, the VM has {}: the next power of two above the sum of all BARs ({})",
              words, to_string(needed), to_string(*guest().mmio_size), to_string(sum)),
          fmt::format("set pciPassthru.64bitMMIOSizeGB to {}", needed.value >> 30), k_gpu_guide);
    }
  }

  /// vGPUs of boards with windows of 64 GiB and more, in VMs with 32 GiB and more.
  void check_vgpu_mmio() {
    if (!is_esxi() || !guest().memory || static_cast<double>(guest().memory->value) < k_large_memory) return;
    double bars = 0;
    std::string type;
    for (const auto& gpu : vms_[vm_].gpus) {
      const double bar = host_.parameters.value_or(gpu.type, "bar1", 0);
      if ((gpu.mode != GpuMode::vgpu && gpu.mode != GpuMode::mig) || bar < k_large_vgpu_bar) continue;
      bars += bar;
      type = gpu.type;
    }
    const auto sum = Bytes{static_cast<std::int64_t>(bars)};
    const bool has_space = guest().uses_64bit_mmio && (!guest().mmio_size || *guest().mmio_size >= sum);
    if (type.empty() || has_space) return;
    add(Severity::error, "mmio",
        fmt::format("vGPUs of {} in a VM of {} need {} of 64-bit MMIO space, the VM has {}", type,
                    to_string(*guest().memory), to_string(sum),
                    guest().uses_64bit_mmio ? to_string(*guest().mmio_size) : "none"),
        fmt::format("set pciPassthru.use64bitMMIO, and pciPassthru.64bitMMIOSizeGB to {} or more", sum.value >> 30),
        "NVIDIA AI Enterprise 5 guide, appendix: GPUs that need 64 GB of MMIO space, VMs with 32 GB and more");
  }

  void check_needs() {
    if (!is_described() && vm_ > 0) return;
    const auto held = vms_[vm_].modes();
    for (const auto& need : guest().needs) {
      const auto gate = gate_of(need, held);
      if (gate.is_open) continue;
      add(gate.is_inferred ? Severity::warning : Severity::error, "needs",
          fmt::format("{} is required, {} does not allow it: {}", need, to_string(guest().mode), gate.reason),
          need == "sharing"                         ? "use vgpu with a smaller profile, or mig"
          : gate.reason.starts_with(k_vsphere_only) ? "use hypervisor: esxi, or drop the requirement"
                                                    : "use vgpu with pvrdma or tcp adapters, or drop the requirement",
          "docs/MODELS.md, operations of a VM, with the vendors' pages");
    }
  }

  [[nodiscard]] Gate gate_of(const std::string& need, const HeldModes& held) const {
    if (need == "sharing") {
      for (const auto& gpu : vms_[vm_].gpus) {
        if (gpu.mode == GpuMode::passthrough) return {false, "a passed-through GPU belongs to one VM", false};
        const bool is_whole = gpu.profile.empty() || is_whole_profile(host_, gpu.type, gpu.profile);
        if (gpu.mode != GpuMode::remote && is_whole) return {false, "the profile takes the whole GPU", false};
      }
      return {};
    }
    const auto operation = need == "migration"         ? VmOperation::migration
                           : need == "ha"              ? VmOperation::ha
                           : need == "drs"             ? VmOperation::drs_balancing
                           : need == "drs-placement"   ? VmOperation::drs_placement
                           : need == "suspend"         ? VmOperation::suspend
                           : need == "clone"           ? VmOperation::clone
                           : need == "hot-add"         ? VmOperation::hot_add
                           : need == "fault-tolerance" ? VmOperation::fault_tolerance
                                                       : VmOperation::snapshot;
    return operation_gate(guest(), held, operation, host_.parameters);
  }

  void check_numa() {
    if (!is_described() || guest().numa_nodes.empty()) return;
    std::set<int> nodes(guest().numa_nodes.begin(), guest().numa_nodes.end());
    std::string far;
    for (const auto& gpu : vms_[vm_].gpus) {
      const auto device = host_.topology.find_device(host_.topology.host_name(host_.host) + "." + gpu.name);
      const int socket = device ? host_.topology.device(*device).socket : -1;
      if (gpu.mode != GpuMode::remote && socket >= 0 && nodes.count(socket) == 0)
        far += (far.empty() ? "" : ", ") + gpu.name;
    }
    if (!far.empty())
      add(Severity::warning, "numa",
          fmt::format("{} on another socket than the VM's memory: copies cross the sockets", far),
          "put the VM on the socket of its devices (numa)", "NVIDIA AI Enterprise guide, one VM per socket");
  }

  void check_remote_memory() {
    if (!is_described()) return;
    for (const auto& held : guest().devices) {
      if (held.remote.empty()) continue;
      const auto gpu = std::ranges::find(vms_[vm_].gpus, held.device, &HeldGpu::name);
      const double whole = gpu == vms_[vm_].gpus.end() ? 0 : host_.parameters.value_or(gpu->type, "memory", 0);
      const double wanted = held.memory ? static_cast<double>(held.memory->value) : whole * held.share;
      if (wanted > whole)
        add(Severity::error, "devices",
            fmt::format("{} asked of remote GPU {} with {}", to_string(*held.memory), held.remote,
                        to_string(Bytes{static_cast<std::int64_t>(whole)})),
            "lower memory", "Bitfusion FlexDirect guide");
      if (guest().memory && static_cast<double>(guest().memory->value) < wanted)
        add(Severity::error, "memory",
            fmt::format("a VM of {} shadows {} of remote GPU memory", to_string(*guest().memory),
                        to_string(Bytes{static_cast<std::int64_t>(wanted)})),
            "give the VM at least as much memory, or lower the share", k_gpu_guide);
    }
  }

  void check_dynamic() {
    if (!guest().has_dynamic_directpath) return;
    const auto* first = cell(host_, "dynamic_directpath_first");
    if (!is_esxi() || (first != nullptr && release_code(guest().version) < first->value))
      add(Severity::error, "dynamic_directpath",
          fmt::format("Dynamic DirectPath needs ESXi 7.0, this is {}{}", to_string(guest().hypervisor),
                      is_esxi() ? " " + to_string(guest().version) : std::string()),
          "upgrade the host, or remove it", first == nullptr ? "" : first->source);
    if (guest().hardware_version > 0 && guest().hardware_version < 17)
      add(Severity::error, "hardware_version",
          fmt::format("Dynamic DirectPath needs hardware version 17, the VM has {}", guest().hardware_version),
          "upgrade the VM", first == nullptr ? "" : first->source);
  }

  void check_memory() {
    if (!guest().host_memory) return;
    double reserved = 0;
    for (const auto& vm : vms_)
      reserved += vm.settings->reserved_share * static_cast<double>(vm.settings->memory.value_or(Bytes{}).value);
    const auto has = static_cast<double>(guest().host_memory->value);
    if (reserved > has)
      add(Severity::error, "host_memory",
          fmt::format("{} VMs reserve {}, the machine has {}", vms_.size(),
                      to_string(Bytes{static_cast<std::int64_t>(reserved)}), to_string(*guest().host_memory)),
          "lower memory, the number of VMs, or what is reserved",
          "configuration maximums; admission control of power-on");
    for (vm_ = 0; vm_ < vms_.size(); ++vm_) {
      const auto& vm = vms_[vm_];
      if (vm.settings->memory && static_cast<double>(vm.settings->memory->value) > has &&
          vm.settings->reserved_share < 1) {
        add(Severity::error, "memory",
            fmt::format("a VM of {} on a machine of {}", to_string(*vm.settings->memory),
                        to_string(Bytes{static_cast<std::int64_t>(has)})),
            "give the VM less memory", "configuration maximums; admission control of power-on");
        return;
      }
    }
  }

  /// VMs described one by one; `vms_per_host` has its own rule.
  void check_cores() {
    if (!is_described()) return;
    const double cores =
        host_.group.host.num_sockets * host_.parameters.value_or(host_.group.host.processor, "cores", 1e9);
    double wanted = 0;
    double exclusive = 0;
    for (vm_ = 0; vm_ < vms_.size(); ++vm_) {
      const auto& vm = vms_[vm_];
      wanted += vm.settings->vcpus.value_or(0);
      if (vm.settings->latency_sensitivity == LatencySensitivity::high) exclusive += vm.settings->vcpus.value_or(0);
      if (vm.settings->vcpus.value_or(0) > 2 * cores) {
        add(Severity::error, "vcpus",
            fmt::format("{} vCPUs of one VM on {:.0f} cores with two threads each", *vm.settings->vcpus, cores),
            "give the VM at most as many vCPUs as the machine has threads", "VMware documentation, virtual CPU limits");
        return;
      }
    }
    vm_ = vms_.size() - 1;
    if (exclusive > cores)
      add(Severity::error, "vcpus",
          fmt::format("latency sensitivity high needs a core for each of {:.0f} vCPUs, there are {:.0f}", exclusive,
                      cores),
          "lower vcpus", "VMware, latency-sensitive workloads in vSphere");
    else if (wanted > cores)
      add(Severity::warning, "vcpus",
          fmt::format("{} VMs with {:.0f} vCPUs on {:.0f} cores: vCPUs wait for a core", vms_.size(), wanted, cores),
          wanted > 4 * cores ? "above 4 : 1 at risk, about 10 : 1 unstable: lower vcpus or the number of VMs"
                             : "lower vcpus or the number of VMs",
          "Broadcom KB 421543");
  }

  bool is_reported_ = false;
};

}  // namespace

void machine_rules(const VirtualHost& host, const std::vector<VmSetup>& vms, std::vector<VmFinding>& found) {
  MachineRules(host, vms, found).run();
}

}  // namespace fabricast::check
