// SPDX-License-Identifier: Apache-2.0
// NCCL's topology XML (NCCL_TOPO_DUMP_FILE) [NVIDIA/nccl src/graph/xml.cc, topo.cc]: <cpu> per NUMA node, <pci> per
// bridge and device (NCCL keeps one <pci> per PCIe switch), <gpu>, <nvlink>, <nic>, <net>. Units: speed Mb/s, latency
// us, link_width lanes; link_speed is text that NCCL looks up word by word. On multi-node NVLink the dump holds several
// hosts, told apart by host_hash.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "import/source.hpp"

namespace fabricast::import {

namespace {

constexpr int k_gpu_class = 0x03;
constexpr int k_network_class = 0x02;
constexpr int k_nvswitch_class = 0x0680;
constexpr int k_bridge_class = 0x0604;

int attribute(const pugi::xml_node& node, const char* name, int otherwise) {
  const auto value = number_of(node.attribute(name).value());
  return value && *value >= -1 && *value <= 0x7fffffff ? static_cast<int>(*value) : otherwise;
}

/// True for the texts in NCCL's table of link speeds; others it takes for generation 3.
bool is_known_to_nccl(std::string_view speed) {
  static const std::set<std::string_view> known{"2.5 GT/s",      "5 GT/s",         "8 GT/s",         "16 GT/s",
                                                "32 GT/s",       "64 GT/s",        "2.5 GT/s PCIe",  "5.0 GT/s PCIe",
                                                "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
  return known.contains(speed);
}

class Reader {
 public:
  Reader(const Source& source, Inventory& out) : source_(source), out_(out) {}

  Result<void> read(const pugi::xml_node& system) {
    for (const auto& cpu : system.children("cpu")) read_cpu(cpu);
    if (machines_.empty())
      return tl::unexpected(Diagnostics{source_.error(place(system), "<system> holds no <cpu>",
                                                      "was the dump written by NCCL (NCCL_TOPO_DUMP_FILE)?")});
    for (auto& [hash, machine] : machines_) {
      finish(machine);
      out_.machines.push_back(std::move(machine));
    }
    return {};
  }

 private:
  [[nodiscard]] SourceLocation place(const pugi::xml_node& node) const {
    return source_.at_offset(node.offset_debug());
  }

  Machine& machine_of(const std::string& hash) {
    for (auto& [known, machine] : machines_) {
      if (known == hash) return machine;
    }
    machines_.emplace_back(hash, Machine{});
    auto& machine = machines_.back().second;
    machine.format = "nccl-topo";
    return machine;
  }

  void read_cpu(const pugi::xml_node& cpu) {
    auto& machine = machine_of(cpu.attribute("host_hash").value());
    if (machine.place.line == 0) machine.place = place(cpu);
    const int numa = attribute(cpu, "numaid", -1);
    if (numa >= 0) machine.has_numa = true;
    machine.highest_numa = std::max(machine.highest_numa, numa);
    auto& processor = machine.processor;
    if (processor.vendor.empty()) {
      processor.vendor = cpu.attribute("vendor").value();
      const int family = attribute(cpu, "familyid", -1);
      // NCCL adds the extended family shifted by four to 15: 143 (0x8f) is family 23, 175 (0xaf) is 25. Files that
      // clouds write by hand (NCCL_TOPO_FILE of Azure's ND A100 v4, of AWS's P5) hold the family itself.
      processor.family = family > 0xf && (family & 0xf) == 0xf ? 0xf + (family >> 4) : family;
      processor.model = attribute(cpu, "modelid", -1);
    }
    std::vector<std::pair<pugi::xml_node, int>> open;  // with the switch above
    add_children(cpu, -1, open);
    for (std::size_t i = 0; i < open.size(); ++i) read_element(open[i].first, open[i].second, numa, machine, open);
  }

  static void add_children(const pugi::xml_node& node, int parent, std::vector<std::pair<pugi::xml_node, int>>& open) {
    for (const auto& child : node.children()) {
      if (child.type() == pugi::node_element) open.emplace_back(child, parent);
    }
  }

  void read_element(const pugi::xml_node& node, int parent, int numa, Machine& machine,
                    std::vector<std::pair<pugi::xml_node, int>>& open) {
    const std::string_view name = node.name();
    if (name == "pci") {
      read_pci(node, parent, numa, machine, open);
    } else if (name == "nic") {  // directly below the processor: no PCI address
      for (const auto& net : node.children("net"))
        out_.unknown.push_back(
            fmt::format("{}: '{}' has no PCI address in the dump ({} Mb/s; NCCL writes 10000 where it "
                        "does not know): left out",
                        at(net), net.attribute("name").value(), net.attribute("speed").value()));
    } else {
      out_.unknown.push_back(fmt::format("{}: <{}> is not read", at(node), node.name()));
    }
  }

  [[nodiscard]] std::string at(const pugi::xml_node& node) const {
    const auto where = place(node);
    return fmt::format("{}:{}", where.file, where.line);
  }

  void read_pci(const pugi::xml_node& node, int parent, int numa, Machine& machine,
                std::vector<std::pair<pugi::xml_node, int>>& open) {
    PciDevice one;
    one.place = place(node);
    one.parent = parent;
    one.numa = numa;
    one.address = pci_address(node.attribute("busid").value());
    one.vendor = attribute(node, "vendor", 0);
    one.device = attribute(node, "device", 0);
    one.subsystem = attribute(node, "subsystem_device", 0);
    read_link(node, one);
    const int pci_class = attribute(node, "class", 0) >> 8;
    constexpr int k_amd = 0x1002, k_accelerator_class = 0x1200;
    const bool has_gpu = !node.child("gpu").empty() || (one.vendor == k_amd && pci_class == k_accelerator_class);
    const bool has_nic = !node.child("nic").empty();
    if (pci_class == k_nvswitch_class) return;
    const bool is_bridge = !has_gpu && !has_nic && (pci_class == k_bridge_class || !node.child("pci").empty());
    if (!is_bridge && pci_class >> 8 != k_gpu_class && pci_class >> 8 != k_network_class && !has_gpu && !has_nic) {
      out_.unknown.push_back(
          fmt::format("{}: PCI class 0x{:04x} is no bridge, GPU or network adapter: left out", at(node), pci_class));
      return;
    }
    one.kind = is_bridge ? PciKind::bridge : has_gpu || pci_class >> 8 == k_gpu_class ? PciKind::gpu : PciKind::nic;
    if (one.kind == PciKind::gpu) read_gpu(node.child("gpu"), one);
    if (one.kind == PciKind::nic) read_nic(node, pci_class, one);
    machine.devices.push_back(std::move(one));
    const int self = static_cast<int>(machine.devices.size()) - 1;
    if (is_bridge) add_children(node, self, open);
  }

  void read_link(const pugi::xml_node& node, PciDevice& one) {
    const std::string_view speed = node.attribute("link_speed").value();
    one.slot = {generation_of_rate(decimal_of(speed)), attribute(node, "link_width", 0)};
    if (speed.empty()) return;
    if (!is_known_to_nccl(speed) && misread_.insert(std::string(speed)).second)
      out_.findings.push_back(source_.warning(
          one.place,
          fmt::format(
              "NCCL reads link_speed '{}', here and wherever it stands, as PCIe 3: the text is not in its table",
              speed),
          one.slot.generation > 0 ? fmt::format("write '{:.1f} GT/s PCIe' in a file that NCCL shall load "
                                                "(NCCL_TOPO_FILE)",
                                                decimal_of(speed))
                                  : "write e.g. '32.0 GT/s PCIe'"));
  }

  void read_gpu(const pugi::xml_node& gpu, PciDevice& one) {
    one.gpu = attribute(gpu, "dev", -1);
    one.compute_capability = attribute(gpu, "sm", 0);
    for (const auto& link : gpu.children()) {
      const std::string_view name = link.name();
      if (name != "nvlink" && name != "xgmi") continue;  // the latter by RCCL, of Infinity Fabric
      const std::string target = link.attribute("target").value();
      const int count = attribute(link, "count", 1);
      if (count < 1 || count > 36) {
        out_.findings.push_back(
            source_.warning(place(link), fmt::format("{} NVLinks to '{}': left out", count, target)));
        continue;
      }
      const int target_class = attribute(link, "tclass", 0) >> 8;
      if (target_class == k_bridge_class || target_class >> 8 == 0x06) {
        if (target_class != k_nvswitch_class) {
          out_.unknown.push_back(
              fmt::format("{}: NVLinks to a bridge or processor ({}) are not modelled: left out", at(link), target));
          continue;
        }
      }
      if (target_class != k_nvswitch_class && pci_address(target) == one.address) {
        out_.findings.push_back(
            source_.warning(place(link), fmt::format("{} NVLinks of GPU {} to itself: left out", count, one.address),
                            "name the GPU at the other end"));
        continue;
      }
      one.nvlinks.push_back({pci_address(target), count, target_class == k_nvswitch_class});
    }
    one.has_c2c = !gpu.child("c2c").empty();
  }

  void read_nic(const pugi::xml_node& node, int pci_class, PciDevice& one) {
    if (pci_class == 0x0207) one.is_infiniband = true;
    if (pci_class == 0x0200) one.is_infiniband = false;
    for (const auto& net : node.child("nic").children("net"))
      one.ports.push_back({net.attribute("name").value(), attribute(net, "dev", -1),
                           decimal_of(net.attribute("speed").value()) / 1000});
  }

  /// One bus for all, no NUMA node: a guest that hides the tree.
  static void finish(Machine& machine) {
    std::set<std::string> buses;
    bool has_bridge = false;
    for (const auto& one : machine.devices) {
      if (one.address.size() > 7) buses.insert(one.address.substr(0, 7));
      has_bridge = has_bridge || one.kind == PciKind::bridge;
    }
    machine.hides_tree = !has_bridge && !machine.has_numa && buses.size() == 1 && machine.devices.size() > 1;
  }

  const Source& source_;
  Inventory& out_;
  std::set<std::string> misread_;                          ///< texts that were reported
  std::vector<std::pair<std::string, Machine>> machines_;  // by host hash, in order
};

}  // namespace

Result<void> read_nccl_topo(const Source& source, Inventory& out) {
  pugi::xml_document document;
  if (auto loaded = load_xml(source, document); !loaded) return loaded;
  const auto system = document.child("system");
  if (system.empty())
    return tl::unexpected(
        Diagnostics{source.error(source.at(1), fmt::format("the XML begins with <{}>, a topology of NCCL with <system>",
                                                           document.document_element().name()))});
  return Reader(source, out).read(system);
}

}  // namespace fabricast::import
