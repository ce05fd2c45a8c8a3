// SPDX-License-Identifier: Apache-2.0
#include "exchange/vm_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <map>
#include <set>

namespace fabricast::exchange {

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::vector<Holder> holders_of(const Topology& topology, int host) {
  const auto& vm = topology.virtualization(host);
  std::vector<Holder> out;
  for (const auto& device : topology.host_spec(host).devices) {
    if (device.kind != DeviceKind::gpu && device.kind != DeviceKind::hca) continue;
    Holder one{&vm, device.name, device.type, {}, {}, "", device.card, 1, {}};
    if (!vm.vm_name.empty()) {
      const auto* held = vm.held(device.name);
      if (held == nullptr || held->gpu == GpuMode::remote) continue;
      one.gpu = held->gpu;
      one.nic = held->nic;
      one.profile = held->profile;
      one.functions = held->functions;
      one.rate_limit = held->rate_limit;
    } else if (device.kind == DeviceKind::gpu) {
      one.gpu = vm.gpu_mode(device.name);
      one.profile = vm.profile;
    } else {
      one.nic = vm.nic_mode(device.name);
      one.rate_limit = vm.rate_limit;
    }
    out.push_back(std::move(one));
  }
  return out;
}

std::string Lines::text(const char* mark, const char* end) const {
  std::string out;
  for (const auto& [line, source] : lines_) {
    out += source.empty() ? line : fmt::format("{:<{}}{}{}{}", line, widest_, mark, source, end);
    out += "\n";
  }
  return out;
}

namespace {

class HostCommands {
 public:
  explicit HostCommands(const Topology& topology) : topology_(topology) {}

  std::string text(const Virtualization& guest, const std::vector<Holder>& all) {
    Lines out;
    const bool is_esxi = guest.hypervisor == Hypervisor::esxi;
    std::map<std::string, int> functions;
    std::map<std::string, std::string> types;
    for (const auto& one : all) {
      if (one.nic == NicMode::sr_iov) functions[one.device] += one.functions;
      types[one.device] = one.type;
    }
    for (const auto& [device, count] : functions)
      out.add(fmt::format("mlxconfig -d DEVICE OF {} set SRIOV_EN=1 NUM_OF_VFS={} LINK_TYPE_P1={}{}", upper(device),
                          std::max(count, guest.firmware_functions), topology_.is_infiniband() ? 1 : 2,
                          guest.has_ats ? " ATS_ENABLED=1" : ""),
              "NVIDIA firmware tools; then restart the host");
    is_esxi ? esxi_commands(guest, all, functions, out) : kvm_commands(all, functions, out);
    gpu_commands(all, out);
    return out.is_empty() ? std::string() : "\n# commands on the host\n" + out.text();
  }

 private:
  [[nodiscard]] unsigned pfc_mask() const {
    unsigned mask = 0;
    const auto& given = topology_.spec().fabric.lossless;
    if (!given || topology_.is_infiniband()) return 0;
    for (const int priority : given->pfc.empty() ? std::vector{3} : given->pfc) mask |= 1U << priority;
    return mask;
  }

  void esxi_commands(const Virtualization& guest, const std::vector<Holder>& all,
                     const std::map<std::string, int>& functions, Lines& out) {
    const auto& lossless = topology_.spec().fabric.lossless;
    std::string module;
    if (!functions.empty()) {
      std::vector<int> counts;
      for (const auto& [device, count] : functions) counts.push_back(count);
      module += fmt::format("max_vfs={}", fmt::join(counts, ","));
    }
    if (const auto mask = pfc_mask(); mask != 0)
      module += fmt::format("{}pfctx=0x{:02x} pfcrx=0x{:02x} trust_state={}", module.empty() ? "" : " ", mask, mask,
                            lossless->trust == "pcp" ? 1 : 2);
    if (!module.empty())
      out.add(fmt::format("esxcli system module parameters set -m nmlx5_core -p \"{}\"", module),
              "NVIDIA native driver for ESXi: a value per port, bit p pauses priority p, trust 1 PCP, 2 DSCP");
    std::set<std::string> passed;
    for (const auto& one : all) {
      const bool is_passed = one.gpu == GpuMode::passthrough || one.nic == NicMode::passthrough;
      if (is_passed && passed.insert(one.device).second)
        out.add(fmt::format("esxcli hardware pci pcipassthru set -d ADDRESS OF {} -e true", upper(one.device)),
                "VMware documentation, DirectPath I/O");
    }
    if (guest.has_ats && passed.size() > 1)
      out.add("esxcli system settings kernel set -s atsSupport -v TRUE",
              "NVIDIA AI Enterprise guide; then power-cycle the host");
    if (std::ranges::any_of(all, [](const Holder& one) { return one.nic == NicMode::pvrdma; })) {
      out.add("esxcli system settings advanced set -o /Net/PVRDMAVmknic -s vmk1", "vSphere networking guide, PVRDMA");
      out.add("esxcli network firewall ruleset set -e true -r pvrdma", "vSphere networking guide, PVRDMA");
    }
  }

  void kvm_commands(const std::vector<Holder>& all, const std::map<std::string, int>& functions, Lines& out) {
    for (const auto& [device, count] : functions)
      out.add(fmt::format("echo {} > /sys/class/net/IF OF {}/device/sriov_numvfs", count, upper(device)),
              "Linux kernel documentation, SR-IOV");
    std::map<std::string, int> next;
    for (const auto& one : all) {
      if (one.nic != NicMode::sr_iov) continue;
      for (int f = 0; f < one.functions; ++f) {
        std::string set;
        if (one.rate_limit)
          set += fmt::format(" max_tx_rate {:.0f}", one.rate_limit->bytes_per_s * 8e-6 / one.functions);
        if (one.vm->vlan > 0) set += fmt::format(" vlan {}", one.vm->vlan);
        if (one.vm->vlan > 0 && one.vm->priority) set += fmt::format(" qos {}", *one.vm->priority);
        const int number = next[one.device]++;
        if (!set.empty())
          out.add(fmt::format("ip link set IF OF {} vf {}{}", upper(one.device), number, set),
                  fmt::format("ip-link(8), Mb/s of one function{}",
                              one.vm->vm_name.empty() ? std::string() : ": VM " + one.vm->vm_name));
      }
    }
    const auto mask = pfc_mask();
    if (mask == 0) return;
    std::vector<int> bits;
    for (unsigned p = 0; p < 8; ++p) bits.push_back(static_cast<int>(mask >> p & 1U));
    std::set<std::string> ports;
    for (const auto& one : all)
      if (one.nic && ports.insert(one.device).second)
        out.add(fmt::format("mlnx_qos -i IF OF {} --trust {} --pfc {}", upper(one.device),
                            topology_.spec().fabric.lossless->trust, fmt::join(bits, ",")),
                "NVIDIA OFED, mlnx_qos: a bit per priority");
  }

  void gpu_commands(const std::vector<Holder>& all, Lines& out) {
    std::map<std::string, std::vector<std::string>> instances;
    std::map<std::string, std::set<std::string>> sizes;
    for (const auto& one : all) {
      const auto card = one.card.empty() ? one.device : one.card;
      if (one.gpu == GpuMode::mig && !one.profile.empty()) instances[card].push_back(one.profile);
      if (one.gpu == GpuMode::vgpu && !one.profile.empty()) sizes[card].insert(one.profile);
    }
    for (const auto& [card, profiles] : instances) {
      out.add(fmt::format("nvidia-smi -i INDEX OF {} -mig 1", upper(card)), "NVIDIA MIG guide");
      out.add(fmt::format("nvidia-smi mig -i INDEX OF {} -cgi {} -C", upper(card), fmt::join(profiles, ",")),
              "NVIDIA MIG guide, largest first");
    }
    for (const auto& [card, profiles] : sizes)
      if (profiles.size() > 1)
        out.add(fmt::format("nvidia-smi vgpu -i INDEX OF {} -shm 1", upper(card)), "NVIDIA vGPU guide, mixed sizes");
  }

  const Topology& topology_;
};

}  // namespace

std::string vm_host_commands(const Topology& topology, const Virtualization& guest, const std::vector<Holder>& all) {
  return HostCommands(topology).text(guest, all);
}

}  // namespace fabricast::exchange
