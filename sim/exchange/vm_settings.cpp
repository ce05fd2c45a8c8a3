// SPDX-License-Identifier: Apache-2.0
// Virtual machines of a topology as the lines that set them up: VMX keys on ESXi, libvirt XML on KVM, and the commands
// of the host for adapters and GPUs. Only what the topology says or needs is written, each with its source; addresses
// and interface names stand in capitals, because a topology has none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "exchange/host_tree.hpp"
#include "exchange/vm_settings.hpp"
#include "fabricast/export.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast {

namespace {

using exchange::Holder;
using exchange::holders_of;
using exchange::Lines;
using exchange::upper;

constexpr double k_gib = 1073741824.0;
constexpr double k_large_bar = 16 * k_gib;

class VmSettings {
 public:
  VmSettings(const Topology& topology, const ParameterSet& parameters) : topology_(topology), parameters_(parameters) {}

  std::string text() {
    std::string out =
        fmt::format("# settings of the virtual machines of {}: addresses and names in capitals are yours to fill in\n",
                    topology_.name());
    bool has_any = false;
    for (const auto& group : exchange::groups(topology_)) {
      const int first = group.first_host;
      if (!topology_.virtualization(first).is_virtual()) continue;
      has_any = true;
      out += machine(first, group.count);
    }
    return has_any ? out : std::string();
  }

 private:
  std::string machine(int first, int count) {
    const auto& guest = topology_.virtualization(first);
    const bool is_esxi = guest.hypervisor == Hypervisor::esxi;
    const auto where = count > 1 ? fmt::format("each of {} hosts like {}", count, topology_.machine_name(first))
                                 : topology_.machine_name(first);
    std::string out = fmt::format("\n## {} ({})\n", where, to_string(guest.hypervisor));
    const int vms = guest.vm_name.empty() ? 1 : guest.vms_on_host;
    std::vector<Holder> all;
    for (int vm = 0; vm < vms; ++vm)
      for (auto& one : holders_of(topology_, first + vm)) all.push_back(std::move(one));
    out += exchange::vm_host_commands(topology_, guest, all);
    for (int vm = 0; vm < vms; ++vm) {
      const auto& one = topology_.virtualization(first + vm);
      const auto name = one.vm_name.empty() ? fmt::format("every VM ({} a host)", one.vms_per_host) : one.vm_name;
      out += fmt::format("\n# VM {}, {}\n", name, is_esxi ? "VMX" : "libvirt");
      out += is_esxi ? vmx(one, holders_of(topology_, first + vm)) : libvirt(one, holders_of(topology_, first + vm));
    }
    return out;
  }

  [[nodiscard]] double bar(const std::string& type) const { return parameters_.value_or(type, "bar1", 0); }

  static bool is_written(const Virtualization& vm, const char* key) { return vm.locations.contains(key); }

  // ---- ESXi -------------------------------------------------------------------------------------------------------

  std::string vmx(const Virtualization& vm, const std::vector<Holder>& held) {
    Lines out;
    const auto key = [&](const std::string& name, const std::string& value, const std::string& source) {
      out.add(fmt::format("{} = \"{}\"", name, value), source);
    };
    if (vm.hardware_version > 0)
      key("virtualHW.version", std::to_string(vm.hardware_version), "Broadcom KB, virtual hardware versions");
    key("firmware", vm.has_efi ? "efi" : "bios", "VMware, GPUs in vSphere 6.7: large BARs need EFI");
    if (vm.vcpus) key("numvcpus", std::to_string(*vm.vcpus), "VMware documentation, VMX");
    if (vm.memory) key("memSize", std::to_string(vm.memory->value >> 20), "VMware documentation, VMX, in MB");
    vmx_reservation(vm, held, key);
    vmx_mmio(vm, held, key);
    int passed = 0;
    for (const auto& one : held) {
      if (one.gpu == GpuMode::passthrough || one.nic == NicMode::passthrough) {
        key(fmt::format("pciPassthru{}.present", passed), "TRUE", "VMware documentation, DirectPath I/O");
        key(fmt::format("pciPassthru{}.id", passed), fmt::format("ADDRESS OF {}", upper(one.device)),
            "lspci on the host");
        ++passed;
      } else if (one.gpu) {
        key(fmt::format("pciPassthru{}.present", passed), "TRUE", "NVIDIA vGPU guide, vSphere");
        key(fmt::format("pciPassthru{}.vgpu", passed),
            one.profile.empty() ? "grid_PROFILE OF THE WHOLE GPU" : "grid_" + one.profile,
            fmt::format("NVIDIA vGPU guide, vSphere: {}", one.card.empty() ? one.device : one.card));
        if (vm.has_unified_memory)
          key(fmt::format("pciPassthru{}.cfg.enable_uvm", passed), "1", "NVIDIA vGPU guide, unified memory");
        ++passed;
      }
    }
    vmx_adapters(vm, held, key);
    return out.text();
  }

  template <typename Key>
  void vmx_reservation(const Virtualization& vm, const std::vector<Holder>& held, const Key& key) {
    const bool has_dma = std::ranges::any_of(
        held, [](const Holder& one) { return one.gpu.has_value() || (one.nic && *one.nic != NicMode::vmxnet3); });
    if (vm.memory && vm.reserved_share > 0) {
      const auto reserved = static_cast<double>(vm.memory->value >> 20) * vm.reserved_share;
      key("sched.mem.min", fmt::format("{:.0f}", reserved),
          has_dma ? "vSphere networking guide p. 146: devices need all memory reserved" : "VMware documentation, VMX");
    }
    if (has_dma && vm.reserved_share >= 1) key("sched.mem.pin", "TRUE", "VMware, latency-sensitive workloads");
    if (vm.latency_sensitivity == LatencySensitivity::high)
      key("sched.cpu.latencySensitivity", "high", "VMware, latency-sensitive workloads in vSphere");
    if (is_written(vm, "cpu_shares"))
      key("sched.cpu.shares", fmt::format("{:.0f}", vm.cpu_shares * vm.vcpus.value_or(1)),
          "vSphere resource management guide, 1000 a vCPU is normal");
    if (!vm.numa_nodes.empty())
      key("numa.nodeAffinity", fmt::format("{}", fmt::join(vm.numa_nodes, ",")), "NVIDIA AI Enterprise guide");
  }

  template <typename Key>
  void vmx_mmio(const Virtualization& vm, const std::vector<Holder>& held, const Key& key) {
    double bars = 0;
    double largest = 0;
    int passed = 0;
    for (const auto& one : held) {
      if (one.gpu == GpuMode::passthrough || one.nic == NicMode::passthrough || one.nic == NicMode::sr_iov) ++passed;
      if (one.gpu != GpuMode::passthrough) continue;
      bars += bar(one.type);
      largest = std::max(largest, bar(one.type));
    }
    if (largest >= k_large_bar && vm.uses_64bit_mmio) {
      const auto size = vm.mmio_size.value_or(mmio_space(Bytes{static_cast<std::int64_t>(bars)}));
      key("pciPassthru.use64bitMMIO", "TRUE", "VMware, GPUs in vSphere 6.7: cards that map 16 GB or more");
      key("pciPassthru.64bitMMIOSizeGB", std::to_string(size.value >> 30),
          "the next power of two above the sum of the VM's own BARs");
    }
    if (passed < 2 || !vm.allow_p2p) return;
    key("pciPassthru.allowP2P", "TRUE", "VMware, GPUDirect RDMA in vSphere 6.7");
    if (vm.acs == AcsMode::direct_translated)
      key("pciPassthru.RelaxACSforP2P", "TRUE", "NVIDIA AI Enterprise guide: DirectTrans+ on the switch ports");
  }

  template <typename Key>
  void vmx_adapters(const Virtualization& vm, const std::vector<Holder>& held, const Key& key) {
    int number = 0;
    const auto network = vm.port_group.empty() ? std::string("PORT GROUP") : vm.port_group;
    for (const auto& one : held) {
      if (!one.nic || *one.nic == NicMode::passthrough) continue;
      const auto* device = *one.nic == NicMode::sr_iov ? "sriov" : *one.nic == NicMode::pvrdma ? "pvrdma" : "vmxnet3";
      for (int f = 0; f < one.functions; ++f) {
        key(fmt::format("ethernet{}.present", number), "TRUE", "VMware documentation, network adapter types");
        key(fmt::format("ethernet{}.virtualDev", number), device, fmt::format("of {} ({})", one.device, one.type));
        key(fmt::format("ethernet{}.networkName", number), network,
            fmt::format("port group{}{}", vm.vlan > 0 ? fmt::format(" on VLAN {}", vm.vlan) : "",
                        is_written(vm, "port_group.shares") ? fmt::format(", shares {:.0f}", vm.network_shares) : ""));
        ++number;
      }
    }
  }

  // ---- KVM --------------------------------------------------------------------------------------------------------

  std::string libvirt(const Virtualization& vm, const std::vector<Holder>& held) {
    Lines out;
    if (vm.vcpus) out.add(fmt::format("<vcpu placement='static'>{}</vcpu>", *vm.vcpus), "libvirt domain format");
    if (vm.memory)
      out.add(fmt::format("<memory unit='MiB'>{}</memory>", vm.memory->value >> 20), "libvirt domain format");
    if (vm.has_huge_pages)
      out.add("<memoryBacking><hugepages/><locked/></memoryBacking>",
              "PeerJ Computer Science 2023: 4 KiB pages lose up to 20 % of 200 Gb/s");
    if (vm.has_efi) out.add("<os firmware='efi'/>", "libvirt domain format; large BARs need EFI");
    if (!vm.numa_nodes.empty())
      out.add(fmt::format("<numatune><memory mode='strict' nodeset='{}'/></numatune>", fmt::join(vm.numa_nodes, ",")),
              "libvirt domain format");
    if (vm.is_pinned && vm.vcpus && is_written(vm, "pinning"))
      out.add("<cputune><!-- a vcpupin for each vCPU, on cores of its devices' socket --></cputune>",
              "libvirt domain format");
    for (const auto& one : held) hostdev(vm, one, out);
    if (vm.guest_topology == GuestTopology::shown)
      out.add("<controller type='pci' model='pcie-expander-bus'/>",
              "QEMU pxb-pcie: one per NUMA node, switches below, so that the guest sees the tree");
    return out.text("  <!-- ", " -->");
  }

  void hostdev(const Virtualization& vm, const Holder& one, Lines& out) {
    const auto address =
        fmt::format("<address domain='0x0000' bus='BUS OF {0}' slot='0' function='0'/>", upper(one.device));
    if (one.gpu == GpuMode::passthrough || one.nic == NicMode::passthrough)
      out.add(fmt::format("<hostdev mode='subsystem' type='pci' managed='yes'><source>{}</source></hostdev>", address),
              fmt::format("libvirt domain format, VFIO: {}", one.device));
    else if (one.gpu)
      out.add(
          "<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='UUID'/></source></hostdev>",
          fmt::format("NVIDIA vGPU guide, KVM: {} of {}", one.profile.empty() ? "the whole GPU" : one.profile,
                      one.card.empty() ? one.device : one.card));
    else if (one.nic == NicMode::sr_iov)
      for (int f = 0; f < one.functions; ++f)
        out.add(fmt::format("<interface type='hostdev' managed='yes'><source><address type='pci' bus='BUS OF {}' "
                            "function='FUNCTION {}'/></source>{}</interface>",
                            upper(one.device), f, vlan_of(vm)),
                "libvirt domain format, SR-IOV");
    else if (one.nic)
      out.add(fmt::format("<interface type='bridge'><source bridge='BRIDGE OF {}'/><model type='virtio'/><driver "
                          "name='{}'/>{}{}</interface>",
                          upper(one.device), vm.has_vhost ? "vhost" : "qemu", vlan_of(vm),
                          is_written(vm, "mtu") || is_written(vm, "port_group.mtu")
                              ? fmt::format("<mtu size='{}'/>", vm.mtu)
                              : std::string()),
              "libvirt domain format, virtio");
  }

  static std::string vlan_of(const Virtualization& vm) {
    return vm.vlan > 0 ? fmt::format("<vlan><tag id='{}'/></vlan>", vm.vlan) : std::string();
  }

  const Topology& topology_;
  const ParameterSet& parameters_;
};

}  // namespace

Result<std::string> vm_settings_file(const Topology& topology, const ParameterSet& parameters) {
  auto text = VmSettings(topology, parameters).text();
  if (text.empty())
    return tl::unexpected(Diagnostics{make_error(fmt::format("'{}' has no virtual machine", topology.name()),
                                                 "write `virtualization` or `vms` in a host group")});
  return text;
}

}  // namespace fabricast
