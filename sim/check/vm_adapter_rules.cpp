// SPDX-License-Identifier: Apache-2.0
// Adapters of VMs: who holds which, how many virtual functions, what PVRDMA needs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "check/vm_setup.hpp"

namespace fabricast::check {

namespace {

constexpr const char* k_networking_guide = "vSphere networking guide, PVRDMA and SR-IOV";

class AdapterRules : VmRules {
 public:
  using VmRules::VmRules;

  void run() {
    check_holders();
    check_functions();
    check_uplinks();
    for (vm_ = 0; vm_ < vms_.size(); ++vm_) {
      check_software_adapters();
      check_shares();
      check_pvrdma();
      check_limits();
    }
  }

 private:
  [[nodiscard]] const Parameter* of(const std::string& type, const char* what) const {
    return cell(host_, fmt::format("{}.{}", adapter_family(type), what));
  }

  void check_holders() {
    std::map<std::string, std::vector<std::size_t>> holders;
    std::map<std::string, bool> is_whole;
    for (std::size_t v = 0; v < vms_.size(); ++v) {
      for (const auto& nic : vms_[v].nics) {
        holders[nic.name].push_back(v);
        is_whole[nic.name] = is_whole[nic.name] || nic.mode == NicMode::passthrough;
      }
    }
    for (const auto& [name, all] : holders) {
      vm_ = all.back();
      if (is_whole[name] && all.size() > 1 && is_described())
        add(Severity::error, "devices",
            fmt::format("{} VMs hold {}, which one of them has by passthrough", all.size(), name),
            "a passed-through adapter belongs to one VM: use vf, pvrdma or vmxnet3 for all",
            "VMware documentation, DirectPath I/O");
    }
  }

  /// Virtual functions of a port: of the adapter, of its firmware, of ESXi's driver, of the host.
  void check_functions() {
    std::map<std::string, int> wanted;
    std::map<std::string, std::string> types;
    int total = 0;
    for (std::size_t v = 0; v < vms_.size(); ++v) {
      for (const auto& nic : vms_[v].nics) {
        if (nic.mode != NicMode::sr_iov) continue;
        wanted[nic.name] += nic.functions;
        types[nic.name] = nic.type;
        total += nic.functions;
        vm_ = v;
      }
    }
    for (const auto& [name, count] : wanted) check_port(name, types[name], count);
    const auto* most = cell(host_, "host_functions");
    if (is_esxi() && most != nullptr && total > most->value)
      add(Severity::error, "devices", fmt::format("{} virtual functions on one host, at most {}", total, most->value),
          "hand out fewer", most->source);
  }

  void check_port(const std::string& name, const std::string& type, int count) {
    const int firmware = guest().firmware_functions;
    if (firmware > 0 && count > firmware) {
      add(Severity::error, "firmware_functions",
          fmt::format("{} virtual functions of {}, its firmware offers {}", count, name, firmware),
          fmt::format("mlxconfig set SRIOV_EN=1 NUM_OF_VFS={} and restart the host (firmware_functions)", count),
          "vSphere networking guide, SR-IOV; NVIDIA firmware tools");
      return;
    }
    const auto* most = of(type, "functions");
    const auto* by_driver = of(type, "esxi_functions");
    if (most != nullptr && count > most->value) {
      add(severity_of(*most), "devices",
          fmt::format("{} virtual functions of {}, a port of {} has {}", count, name, type, most->value),
          "hand out fewer, or use more ports", most->source);
    } else if (by_driver != nullptr && is_esxi() && count > by_driver->value) {
      add(Severity::warning, "devices",
          fmt::format("{} virtual functions of {}: ESXi's driver gives {} unless the firmware says more", count, name,
                      by_driver->value),
          "set NUM_OF_VFS in the firmware (firmware_functions)", by_driver->source);
    }
  }

  void check_software_adapters() {
    for (const auto& nic : vms_[vm_].nics) {
      if (nic.mode == NicMode::virtio && is_esxi())
        add(Severity::error, "devices", fmt::format("ESXi has no virtio adapter ({})", nic.name), "use vmxnet3",
            "VMware documentation, network adapter types");
      if (nic.mode == NicMode::vmxnet3 &&
          (guest().hypervisor == Hypervisor::hyper_v || guest().hypervisor == Hypervisor::xen ||
           guest().hypervisor == Hypervisor::cloud_hypervisor))
        add(Severity::error, "devices",
            fmt::format("{} has no vmxnet3 adapter ({})", to_string(guest().hypervisor), nic.name), "use virtio",
            "QEMU and VMware have one, the others their own");
    }
  }

  /// Shares are of the hypervisor's switch: what goes past it, or is another's, has none.
  void check_shares() {
    const auto& vm = guest();
    if (!vm.has_vhost && vm.hypervisor != Hypervisor::kvm)
      add(Severity::error, "vhost", fmt::format("{} has no vhost to switch off", to_string(vm.hypervisor)),
          "remove vhost, or write hypervisor: kvm", "QEMU documentation, virtio-net");
    if (!vm.locations.contains("port_group.shares")) return;
    if (!is_esxi()) {
      add(Severity::error, "port_group.shares", fmt::format("{} hands out no shares", to_string(vm.hypervisor)),
          "limit the adapters instead (rate_limit), or remove shares", "vSphere networking guide, network I/O control");
      return;
    }
    const auto is_past = [](const HeldNic& nic) {
      return nic.mode == NicMode::sr_iov || nic.mode == NicMode::passthrough || nic.mode == NicMode::pvrdma;
    };
    for (const auto& nic : vms_[vm_].nics) {
      if (!is_past(nic)) continue;
      add(Severity::warning, "port_group.shares",
          fmt::format("shares do not reach {} ({}): its traffic goes past the hypervisor's switch", nic.name,
                      to_string(nic.mode)),
          "use vmxnet3, or rate limits of the adapter", "vSphere networking guide, network I/O control and SR-IOV");
      return;
    }
  }

  /// The adapter of PVRDMA is the only uplink of its distributed switch: no other adapter of the machine serves it.
  void check_uplinks() {
    if (!is_esxi() || !is_described()) return;
    std::map<std::string, std::string> uplink;  // of each switch that carries PVRDMA
    for (const auto& vm : vms_)
      for (const auto& nic : vm.nics)
        if (nic.mode == NicMode::pvrdma) uplink.try_emplace(vm.settings->switch_name, nic.name);
    for (vm_ = 0; vm_ < vms_.size(); ++vm_) {
      const auto own = uplink.find(guest().switch_name);
      if (own == uplink.end()) continue;
      for (const auto& nic : vms_[vm_].nics) {
        const bool is_on_switch = is_on_hypervisor_switch(nic.mode);
        const bool is_written = guest().locations.contains("distributed_switch");
        if (!is_on_switch || !is_written || nic.name == own->second || !is_cabled(nic)) continue;
        add(Severity::error, "distributed_switch",
            fmt::format("distributed switch '{}' has PVRDMA over {}, and {} as a second uplink", own->first,
                        own->second, nic.name),
            fmt::format("attach {} to a distributed switch of its own", nic.name),
            "vSphere networking guide p. 167: the adapter is the only uplink, no teaming");
      }
    }
  }

  /// A port of the hypervisor's own switch has no device.
  [[nodiscard]] bool is_cabled(const HeldNic& nic) const { return !nic.type.empty(); }

  void check_pvrdma() {
    int count = 0;
    for (const auto& nic : vms_[vm_].nics) {
      if (nic.mode != NicMode::pvrdma) continue;
      ++count;
      check_uplink(nic);
    }
    if (count == 0) return;
    const auto* first = cell(host_, "pvrdma_hardware_version");
    const int version = guest().hardware_version;
    if (is_esxi() && first != nullptr && version > 0 && version < first->value)
      add(Severity::error, "hardware_version",
          fmt::format("PVRDMA needs hardware version {:.0f}, the VM has {}", first->value, version),
          fmt::format("upgrade the VM to hardware version {:.0f} or later", first->value), first->source);
    if (guest().guest_system == GuestSystem::windows)
      add(Severity::error, "guest_os", "PVRDMA has no driver for Windows", "take a 64-bit Linux guest, or sr-iov",
          "Broadcom KB 328676");
    if (is_esxi() && guest().reserved_share < 1)
      add(Severity::error, "memory_reservation", "PVRDMA needs all memory of the VM reserved",
          "reserve all guest memory (memory_reservation: full)", "vSphere networking guide p. 167");
    const auto* many = cell(host_, "pvrdma_many_first");
    if (is_esxi() && many != nullptr && count > 1 && release_code(guest().version) < many->value && is_described())
      add(Severity::error, "devices",
          fmt::format("{} PVRDMA adapters in one VM, ESXi {} allows 1", count, to_string(guest().version)),
          "take one, or ESXi 7.0 U2", many->source);
    if (is_esxi() && count > 10)
      add(Severity::error, "devices", fmt::format("{} PVRDMA adapters in one VM, at most 10", count), "take fewer",
          "VMware documentation, PVRDMA from 7.0 U2");
  }

  /// PVRDMA is RDMA on a RoCE adapter; on another it is TCP, or nothing.
  void check_uplink(const HeldNic& nic) {
    const auto* fits = of(nic.type, "pvrdma");
    if (fits != nullptr && fits->value == 0) {
      add(severity_of(*fits), "devices", fmt::format("PVRDMA over {}, an InfiniBand adapter", nic.type),
          "take a RoCE adapter (ConnectX-4 or later with Ethernet ports), or sr-iov", fits->source);
    } else if (host_.protocol(nic.type) == "infiniband") {
      add(Severity::error, "devices",
          fmt::format("PVRDMA over {} ({}), whose ports are InfiniBand", nic.name, nic.type),
          "set the ports to Ethernet (LINK_TYPE_P1=2) on an Ethernet switch, or use sr-iov", k_networking_guide);
    } else if (host_.parameters.value_or(nic.type, "rdma", 1) == 0) {
      add(Severity::warning, "devices",
          fmt::format("{} ({}) has no RDMA: PVRDMA falls back to TCP by itself, and is slower", nic.name, nic.type),
          "take a RoCE adapter where RDMA is wanted", "vSphere networking guide 6.5 p. 164");
    }
  }

  void check_size(const HeldNic& nic) {
    const double port = host_.parameters.value_or(nic.type, "rate", 0);
    const auto held = std::ranges::find(guest().devices, nic.name, &VmDevice::device);
    const auto limit = held == guest().devices.end() ? guest().rate_limit : held->rate_limit;
    if (port <= 0 || !limit || limit->bytes_per_s < port) return;
    add(Severity::warning, is_described() ? "devices" : "rate_limit",
        fmt::format("a limit of {:g} Gb/s on {}, whose port has {:g}: it limits nothing", limit->bytes_per_s * 8e-9,
                    nic.name, port * 8e-9),
        "lower rate_limit, or remove it", "ip-link: max_tx_rate of a virtual function");
  }

  void check_limits() {
    for (const auto& nic : vms_[vm_].nics) {
      if (!nic.is_limited || nic.mode != NicMode::sr_iov) continue;
      check_size(nic);
      if (is_esxi())
        add(Severity::warning, is_described() ? "devices" : "rate_limit",
            "vSphere has no rate limit for virtual functions: it must come from elsewhere",
            "set it on the adapter (devlink, vendor tools), or use vmxnet3 with traffic shaping",
            "VMware documentation G-DA8506CE, 5.1 to 7.0");
      else if (host_.protocol(nic.type) == "infiniband")
        add(Severity::warning, is_described() ? "devices" : "rate_limit",
            fmt::format("virtual functions of InfiniBand ports take no rate limit ({})", nic.name),
            "limit by the subnet manager, or use Ethernet ports", "docker-sriov-plugin issue 22");
      return;
    }
  }
};

}  // namespace

void adapter_rules(const VirtualHost& host, const std::vector<VmSetup>& vms, std::vector<VmFinding>& found) {
  AdapterRules(host, vms, found).run();
}

}  // namespace fabricast::check
