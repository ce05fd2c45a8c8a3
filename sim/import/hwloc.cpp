// SPDX-License-Identifier: Apache-2.0
// hwloc / lstopo XML, versions 2 and 3 [open-mpi/hwloc hwloc/hwloc2.dtd]: one machine. pci_link_speed is GB/s of the
// whole link as trained when the file was written (idle GPUs train down). osdev_type is an enumeration in version 2 and
// a bit mask in version 3, so what a device is comes from its PCI class. NVLinks: the matrix "NVLinkBandwidth", MB/s,
// between objects named TYPE:gp_index.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "import/source.hpp"

namespace fabricast::import {

namespace {

/// Generation and width whose payload rate is nearest to GB/s as hwloc computes it: rate x width / 8 x coding.
PcieRate rate_of(double gbyte_per_s) {
  static constexpr std::array<double, 6> per_lane{
      0.25, 0.5, 8.0 / 8 * 128 / 130, 16.0 / 8 * 128 / 130, 32.0 / 8 * 128 / 130, 64.0 / 8 * 242 / 256};
  PcieRate best;
  double best_error = 0.02;
  for (int width = 16; width >= 1; width /= 2) {
    for (int g = 6; g >= 1; --g) {
      const double error = std::abs(per_lane[static_cast<std::size_t>(g) - 1] * width / gbyte_per_s - 1);
      if (error >= best_error) continue;
      best_error = error;
      best = {g, width};
    }
  }
  return best;
}

/// "0302 [10de:1db8] [10de:131d] a1 00"
void read_type(std::string_view text, PciDevice& one, int& pci_class) {
  const auto words = words_of(text);
  if (!words.empty()) pci_class = static_cast<int>(number_of(words[0], 16).value_or(0));
  const auto pair = [](std::string_view word, int& first, int& second) {
    if (word.size() < 11) return;
    first = static_cast<int>(number_of(word.substr(1, 4), 16).value_or(0));
    second = static_cast<int>(number_of(word.substr(6, 4), 16).value_or(0));
  };
  int ignored = 0;
  if (words.size() > 1) pair(words[1], one.vendor, one.device);
  if (words.size() > 2) pair(words[2], ignored, one.subsystem);
}

class Reader {
 public:
  Reader(const Source& source, Inventory& out) : source_(source), out_(out) {}

  Result<void> read(const pugi::xml_node& topology) {
    machine_.format = "hwloc";
    machine_.place = source_.at_offset(topology.offset_debug());
    struct Open {
      pugi::xml_node node;
      int parent;
      std::string root;
      int package;
      int numa;
    };
    read_name(topology);  // version 3; in version 2 the machine has it
    std::vector<Open> open;
    for (const auto& object : topology.children("object")) open.push_back({object, -1, "", -1, -1});
    // Depth first, in the order of the file: parents stand before children.
    while (!open.empty()) {
      auto at = open.back();
      open.pop_back();
      if (!read_object(at.node, at.parent, at.root, at.package, at.numa)) continue;
      std::vector<pugi::xml_node> below;
      for (const auto& child : at.node.children("object")) below.push_back(child);
      for (auto it = below.rbegin(); it != below.rend(); ++it)
        open.push_back({*it, at.parent, at.root, at.package, at.numa});
    }
    if (machine_.num_sockets == 0 && machine_.devices.empty() && !has_cores_)
      return tl::unexpected(Diagnostics{source_.error(machine_.place, "no package, no core and no PCI device",
                                                      "write it with `lstopo --of xml` as root")});
    number_gpus();
    for (const auto& matrix : topology.children()) {
      if (std::string_view(matrix.attribute("name").value()) == "NVLinkBandwidth") read_nvlinks(matrix);
    }
    keep_devices();
    out_.machines.push_back(std::move(machine_));
    return {};
  }

 private:
  /// Returns whether the object's children matter; changes what they inherit.
  bool read_object(const pugi::xml_node& node, int& parent, std::string& root, int& package, int& numa) {
    const std::string_view type = node.attribute("type").value();
    if (type == "Machine") read_name(node);
    if (type == "Package") {
      package = machine_.num_sockets++;
      read_package(node);
    }
    if (type == "Package" || type == "Group" || type == "Machine" || type == "Die") read_numa(node, package, numa);
    has_cores_ = has_cores_ || type == "Core" || type == "PU";
    if (type == "Core" || type == "PU" || type == "Misc") return false;
    if (type == "Bridge" && std::string_view(node.attribute("bridge_type").value()).starts_with("0-")) {
      root = node.attribute("bridge_pci").value();
      return true;
    }
    if (type == "Bridge" || type == "PCIDev") return read_pci(node, type == "Bridge", parent, root, numa);
    return true;
  }

  void read_name(const pugi::xml_node& node) {
    for (const auto& info : node.children("info")) {
      if (std::string_view(info.attribute("name").value()) == "HostName")
        machine_.name = info.attribute("value").value();
    }
  }

  void read_package(const pugi::xml_node& node) {
    auto& processor = machine_.processor;
    for (const auto& info : node.children("info")) {
      const std::string_view name = info.attribute("name").value();
      const std::string_view value = info.attribute("value").value();
      const auto number = static_cast<int>(number_of(value).value_or(-1));
      if (name == "CPUVendor") processor.vendor = value;
      if (name == "CPUFamilyNumber") processor.family = number;
      if (name == "CPUModelNumber") processor.model = number;
      if (name == "CPUStepping") processor.stepping = number;
      if (name == "CPUModel") processor.name = value;
    }
  }

  void read_numa(const pugi::xml_node& node, int package, int& numa) {
    for (const auto& child : node.children("object")) {
      if (std::string_view(child.attribute("type").value()) != "NUMANode") continue;
      const auto number = number_of(child.attribute("os_index").value());
      if (!number || *number < 0 || *number > 4096) continue;
      numa = static_cast<int>(*number);
      machine_.has_numa = true;
      if (package >= 0) machine_.socket_of_numa[numa] = package;
    }
    // Devices below a package without a NUMA node of its own inherit a number that stands for the package.
    if (numa < 0 && package >= 0) numa = package;
    if (numa >= 0 && package >= 0) machine_.socket_of_numa.try_emplace(numa, package);
  }

  bool read_pci(const pugi::xml_node& node, bool is_bridge, int& parent, const std::string& root, int numa) {
    PciDevice one;
    one.place = source_.at_offset(node.offset_debug());
    one.parent = parent;
    one.root = root;
    one.numa = numa;
    one.address = pci_address(node.attribute("pci_busid").value());
    int pci_class = 0;
    read_type(node.attribute("pci_type").value(), one, pci_class);
    if (const double speed = decimal_of(node.attribute("pci_link_speed").value()); speed > 0)
      one.trained = rate_of(speed);
    const bool is_gpu = pci_class >> 8 == 0x03 || (pci_class == 0x1200 && one.vendor == 0x1002);
    one.kind = is_bridge             ? PciKind::bridge
               : is_gpu              ? PciKind::gpu
               : pci_class == 0x0680 ? PciKind::nvswitch
                                     : PciKind::nic;
    one.is_display = pci_class == 0x0300;
    if (std::string_view(node.attribute("subtype").value()) == "NVSwitch") one.kind = PciKind::nvswitch;
    const bool is_wanted =
        is_bridge || one.kind == PciKind::nvswitch || is_gpu || pci_class >> 8 == 0x02 || pci_class == 0x0680;
    if (!is_wanted) return false;
    if (pci_class == 0x0207) one.is_infiniband = true;
    read_os_devices(node, one);
    const auto number = static_cast<int>(machine_.devices.size());
    index_["PCIDev:" + std::string(node.attribute("gp_index").value())] = number;
    machine_.devices.push_back(std::move(one));
    if (is_bridge) parent = number;
    return is_bridge;
  }

  void read_os_devices(const pugi::xml_node& node, PciDevice& one) {
    for (const auto& child : node.children("object")) {
      if (std::string_view(child.attribute("type").value()) != "OSDev") continue;
      const std::string name = child.attribute("name").value();
      index_["OSDev:" + std::string(child.attribute("gp_index").value())] = static_cast<int>(machine_.devices.size());
      for (const auto& info : child.children("info")) {
        if (std::string_view(info.attribute("name").value()) == "GPUModel") one.model = info.attribute("value").value();
      }
      if (name.starts_with("nvml") || name.starts_with("cuda") || name.starts_with("rsmi"))
        one.gpu = static_cast<int>(number_of(std::string_view(name).substr(4)).value_or(-1));
      if (name.starts_with("mlx") || name.starts_with("hfi") || name.starts_with("bnxt_re") ||
          name.starts_with("rdma") || name.starts_with("roce") || name.starts_with("ib"))
        one.ports.push_back({name, -1, 0});
    }
  }

  /// Display adapters of the board (ASPEED, Matrox, ATI) are no GPUs, and NVIDIA's count in the order of their
  /// addresses.
  void number_gpus() {
    int next = 0;
    for (const auto& one : machine_.devices) next = std::max(next, one.gpu + 1);
    for (auto& one : machine_.devices) {
      if (one.kind == PciKind::gpu && one.gpu < 0 && one.vendor == 0x10de) one.gpu = next++;
    }
  }

  void read_nvlinks(const pugi::xml_node& matrix) {
    std::vector<int> devices;
    std::vector<double> values;
    for (const auto& part : matrix.children()) {
      const std::string_view name = part.name();
      for (const auto word : words_of(part.text().get())) {
        if (name == "indexes") {
          std::string key(word);
          if (!has(key, ":")) key = std::string(matrix.attribute("type").value()) + ":" + key;
          const auto found = index_.find(key);
          devices.push_back(found == index_.end() ? -1 : found->second);
        } else if (name == "u64values") {
          values.push_back(decimal_of(word));
        }
      }
    }
    const auto n = devices.size();
    if (n > 4096 || values.size() != n * n) {
      out_.findings.push_back(source_.warning(
          source_.at_offset(matrix.offset_debug()),
          fmt::format("the matrix of NVLinks has {} values for {} devices: left out", values.size(), n)));
      return;
    }
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) add_nvlink(devices[i], devices[j], values[i * n + j]);
    }
  }

  void add_nvlink(int from, int to, double mbyte_per_s) {
    if (from < 0 || to < 0 || from == to || mbyte_per_s <= 0) return;
    auto& gpu = machine_.devices[static_cast<std::size_t>(from)];
    const auto& other = machine_.devices[static_cast<std::size_t>(to)];
    if (gpu.kind != PciKind::gpu || mbyte_per_s > 1e6) return;  // the diagonal says "itself" with a huge number
    // 20,000 MB/s per link of the first generation, 25,000 of the others [hwloc/topology-nvml.c].
    const int count = static_cast<int>(std::lround(mbyte_per_s / (gpu.device >> 4 == 0x15f ? 20000 : 25000)));
    if (count >= 1 && count <= 36) gpu.nvlinks.push_back({other.address, count, other.kind == PciKind::nvswitch});
  }

  /// Bridges fold to switches; adapters without an RDMA device and that are no InfiniBand are left out.
  void keep_devices() {
    for (auto& one : machine_.devices) {
      const bool is_gpu = one.gpu >= 0 || (one.vendor == 0x1002 && !one.is_display);
      if (one.kind == PciKind::gpu && !is_gpu) one.kind = PciKind::nvswitch;
      if (one.kind == PciKind::nic && one.ports.empty() && !one.is_infiniband.value_or(false)) {
        out_.unknown.push_back(fmt::format("{}:{}: adapter {} [{:04x}:{:04x}] has no RDMA device: left out",
                                           one.place.file, one.place.line, one.address, one.vendor, one.device));
        one.kind = PciKind::nvswitch;  // dropped below
      }
    }
    fold_ports(machine_.devices);
    std::vector<int> moved(machine_.devices.size(), -1);
    std::vector<PciDevice> kept;
    for (std::size_t i = 0; i < machine_.devices.size(); ++i) {
      auto one = machine_.devices[i];
      if (one.kind == PciKind::nvswitch) continue;
      if (one.parent >= 0) one.parent = moved[static_cast<std::size_t>(one.parent)];
      moved[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(one));
    }
    machine_.devices = std::move(kept);
  }

  const Source& source_;
  Inventory& out_;
  Machine machine_;
  bool has_cores_ = false;
  std::map<std::string, int> index_;  ///< TYPE:gp_index -> device
};

}  // namespace

Result<void> read_hwloc(const Source& source, Inventory& out) {
  pugi::xml_document document;
  if (auto loaded = load_xml(source, document); !loaded) return loaded;
  const auto topology = document.child("topology");
  if (topology.empty())
    return tl::unexpected(Diagnostics{
        source.error(source.at(1), fmt::format("the XML begins with <{}>, a topology of hwloc with <topology>",
                                               document.document_element().name()))});
  const std::string_view version = topology.attribute("version").value();
  if (!version.starts_with("2") && !version.starts_with("3"))
    return tl::unexpected(
        Diagnostics{source.error(source.at_offset(topology.offset_debug()),
                                 version.empty() ? std::string("hwloc 1 wrote this XML, expected version 2 or 3")
                                                 : fmt::format("hwloc XML version '{}', expected 2 or 3", version),
                                 "hwloc 2 converts it: `lstopo -i OLD.xml NEW.xml`")});
  return Reader(source, out).read(topology);
}

}  // namespace fabricast::import
