// SPDX-License-Identifier: Apache-2.0
// NCCL's topology XML [NVIDIA/nccl src/graph/xml.cc]: <cpu> per socket, <pci> per switch and device, <gpu> with its
// NVLinks, <nic> with its ports. The text of link_speed is one that NCCL's table holds.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/adapter_numbers.hpp"
#include "base/gpu_numbers.hpp"
#include "fabricast/export.hpp"

namespace fabricast {

namespace {

const char* speed_text(int generation) {
  static constexpr std::array<const char*, 7> texts{
      "", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
  return texts[static_cast<std::size_t>(std::clamp(generation, 0, 6))];
}

/// CPUID as NCCL prints it.
struct CpuNumbers {
  const char* vendor;
  int family, model;
};
CpuNumbers cpu_numbers(const std::string& processor) {
  static const std::map<std::string, CpuNumbers> known{
      {"xeon-sandybridge", {"GenuineIntel", 6, 45}},    {"xeon-ivybridge", {"GenuineIntel", 6, 62}},
      {"xeon-haswell", {"GenuineIntel", 6, 63}},        {"xeon-broadwell", {"GenuineIntel", 6, 79}},
      {"xeon-skylake", {"GenuineIntel", 6, 85}},        {"xeon-cascadelake", {"GenuineIntel", 6, 85}},
      {"xeon-icelake", {"GenuineIntel", 6, 106}},       {"xeon-sapphirerapids", {"GenuineIntel", 6, 143}},
      {"xeon-emeraldrapids", {"GenuineIntel", 6, 207}}, {"xeon-emeraldrapids-vm", {"GenuineIntel", 6, 207}},
      {"xeon-graniterapids", {"GenuineIntel", 6, 173}}, {"epyc-naples", {"AuthenticAMD", 143, 1}},
      {"epyc-rome", {"AuthenticAMD", 143, 49}},         {"epyc-rome-nps4", {"AuthenticAMD", 143, 49}},
      {"epyc-milan", {"AuthenticAMD", 175, 1}},         {"epyc-milan-nps4", {"AuthenticAMD", 175, 1}},
      {"epyc-genoa", {"AuthenticAMD", 175, 17}}};
  const auto found = known.find(processor);
  return found == known.end() ? CpuNumbers{"", 0, 0} : found->second;
}

/// PCI vendor and device numbers of the catalogue's types [pci.ids].
std::string pci_numbers(const std::string& type, DeviceKind kind) {
  const auto numbers = [](int vendor, int device) {
    return fmt::format("vendor=\"0x{:04x}\" device=\"0x{:04x}\"", vendor, device);
  };
  if (kind == DeviceKind::pcie_switch) return numbers(0x1000, 0xc030);
  if (kind == DeviceKind::hca) {
    const auto adapter = devices::adapter_numbers(type);
    return numbers(adapter.vendor, adapter.device);
  }
  for (const auto& one : devices::k_amd_gpus)
    if (type == one.name) return numbers(0x1002, one.device);
  for (const auto& one : devices::k_gpus)
    if (type == one.name) return numbers(0x10de, one.device);
  return "vendor=\"0x10de\"";
}

/// What AMD's compilers, and RCCL, call an architecture of the catalogue [AMD GPU specifications, LLVM target name].
std::string gcn_attribute(std::string_view architecture) {
  static const std::map<std::string_view, const char*> targets{
      {"cdna", "gfx908"}, {"cdna2", "gfx90a"}, {"cdna3", "gfx942"}, {"cdna4", "gfx950"}};
  const auto found = targets.find(architecture);
  return found == targets.end() ? "" : fmt::format(" gcn=\"{}\"", found->second);
}

class Writer {
 public:
  Writer(const Topology& topology, int host, const ParameterSet& parameters)
      : topology_(topology),
        spec_(topology.host_spec(host)),
        parameters_(parameters),
        is_amd_(std::ranges::any_of(spec_.devices, [&](const DeviceSpec& device) {
          return device.kind == DeviceKind::gpu && topology.attribute(device.type, "vendor") == "amd";
        })) {}

  std::string write() {
    for (const auto& device : spec_.devices) {
      if (device.kind == DeviceKind::gpu || device.kind == DeviceKind::hca || device.kind == DeviceKind::pcie_switch)
        addresses_[device.name] = fmt::format("0000:{:02x}:00.0", bus_++ % 256);
    }
    std::string out = fmt::format("<system version=\"{}\">\n", is_amd_ ? 2 : 1);
    for (int socket = 0; socket < spec_.num_sockets; ++socket) {
      const auto cpu = cpu_numbers(spec_.processor);
      const bool is_arm = topology_.attribute(spec_.processor, "vendor") == "nvidia";
      out += fmt::format("  <cpu numaid=\"{}\" arch=\"{}\" vendor=\"{}\" familyid=\"{}\" modelid=\"{}\">\n", socket,
                         is_arm ? "arm64" : "x86_64", cpu.vendor, cpu.family, cpu.model);
      add_below(fmt::format("socket{}", socket), 4, out);
      for (const auto& device : spec_.devices) {
        if (device.kind == DeviceKind::root_complex && device.below == fmt::format("socket{}", socket))
          add_below(device.name, 4, out);
      }
      out += "  </cpu>\n";
    }
    return out + "</system>\n";
  }

 private:
  /// 3D controllers; AMD's are processing accelerators.
  [[nodiscard]] const char* gpu_class() const { return is_amd_ ? "0x120000" : "0x030200"; }
  [[nodiscard]] const char* adapter_class(const std::string& type) const {
    return topology_.attribute(type, "protocol") == "infiniband" ? "0x020700" : "0x020000";
  }

  void add_below(const std::string& parent, int indent, std::string& out) {
    for (const auto& device : spec_.devices) {
      if (device.below != parent || !addresses_.contains(device.name)) continue;
      const std::string pad(static_cast<std::size_t>(indent), ' ');
      const bool is_switch = device.kind == DeviceKind::pcie_switch;
      const char* pci_class = is_switch                        ? "0x060400"
                              : device.kind == DeviceKind::gpu ? gpu_class()
                                                               : adapter_class(device.type);
      int generation = device.pcie.generation, width = device.pcie.width;
      if (generation == 0) generation = static_cast<int>(parameters_.value_or(device.type, "pcie_generation", 4));
      if (width == 0) width = static_cast<int>(parameters_.value_or(device.type, "pcie_width", 16));
      out += fmt::format("{}<pci busid=\"{}\" class=\"{}\" {} link_speed=\"{}\" link_width=\"{}\">\n", pad,
                         addresses_[device.name], pci_class, pci_numbers(device.type, device.kind),
                         speed_text(generation), width);
      if (is_switch) add_below(device.name, indent + 2, out);
      if (device.kind == DeviceKind::gpu) add_gpu(device, pad, out);
      if (device.kind == DeviceKind::hca) add_nic(device, pad, out);
      out += pad + "</pci>\n";
    }
  }

  void add_gpu(const DeviceSpec& device, const std::string& pad, std::string& out) {
    const int number = number_of(device.name, DeviceKind::gpu);
    const int capability = static_cast<int>(parameters_.value_or(device.type, "compute_capability", 80));
    out += fmt::format("{}  <gpu dev=\"{}\" sm=\"{}\"{} rank=\"{}\" gdr=\"1\">\n", pad, number, capability,
                       is_amd_ ? gcn_attribute(topology_.attribute(device.type, "architecture")) : "", number);
    for (const auto& link : spec_.nvlinks) {
      const bool is_mine =
          link.from == device.name || link.to == device.name || link.from == "gpus" || link.to == "gpus";
      if (!is_mine) continue;
      const auto& other = link.from == device.name || link.from == "gpus" ? link.to : link.from;
      const auto gpu = addresses_.find(other);
      out += fmt::format("{}    <{} target=\"{}\" count=\"{}\" tclass=\"{}\"/>\n", pad, is_amd_ ? "xgmi" : "nvlink",
                         gpu == addresses_.end() ? "fffffff:ff:ff.0" : gpu->second, link.links,
                         gpu == addresses_.end() ? "0x068000" : gpu_class());
    }
    if (topology_.attribute(device.type, "form") == "superchip") {
      // As NCCL prints it of GB300: five links of 44.7 GB/s; GH200 has its processor to itself.
      const int links = capability >= 100 ? 5 : 10;
      out += fmt::format("{}    <c2c bw=\"44712\" count=\"{}\"/>\n", pad, links);
    }
    out += pad + "  </gpu>\n";
  }

  void add_nic(const DeviceSpec& device, const std::string& pad, std::string& out) {
    const int number = number_of(device.name, DeviceKind::hca);
    const double rate = parameters_.value_or(device.type, "rate", 0) * 8 / 1e6;
    out += fmt::format(
        "{0}  <nic>\n{0}    <net name=\"{3}{1}\" dev=\"{1}\" speed=\"{2:.0f}\" port=\"1\" latency=\"0.000000\" "
        "guid=\"0x{1:x}\" maxconn=\"131072\" gdr=\"1\"/>\n{0}  </nic>\n",
        pad, number, rate, devices::adapter_numbers(device.type).driver);
  }

  [[nodiscard]] int number_of(const std::string& name, DeviceKind kind) const {
    int number = 0;
    for (const auto& device : spec_.devices) {
      if (device.kind != kind) continue;
      if (device.name == name) return number;
      ++number;
    }
    return number;
  }

  const Topology& topology_;
  const HostSpec& spec_;
  const ParameterSet& parameters_;
  bool is_amd_;
  std::map<std::string, std::string> addresses_;
  int bus_ = 1;
};

}  // namespace

std::string nccl_topology_xml(const Topology& topology, int host, const ParameterSet& parameters) {
  return Writer(topology, host, parameters).write();
}

}  // namespace fabricast
