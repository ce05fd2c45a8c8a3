// SPDX-License-Identifier: Apache-2.0
// What virtual machines are given: libvirt's domain XML (`virsh dumpxml`), and vSphere objects as govc prints them
// (`-json`; PCI ids there are signed 16-bit numbers).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "import/source.hpp"

namespace fabricast::import {

namespace {

std::string address_of(const pugi::xml_node& node) {
  if (node.empty()) return {};
  const auto part = [&](const char* name) { return number_of(node.attribute(name).value()).value_or(0); };
  if (node.attribute("bus").empty()) return {};
  const auto domain = part("domain"), bus = part("bus"), slot = part("slot"), function = part("function");
  if (domain < 0 || domain > 0xffff || bus < 0 || bus > 255 || slot < 0 || slot > 31 || function < 0 || function > 7)
    return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, slot, function);
}

long long memory_mib(const pugi::xml_node& node) {
  static const std::map<std::string, double, std::less<>> units{
      {"", 1.0 / 1024}, {"KiB", 1.0 / 1024}, {"k", 1.0 / 1024}, {"MiB", 1},           {"M", 1},
      {"GiB", 1024},    {"G", 1024},         {"TiB", 1048576},  {"b", 1.0 / 1048576}, {"bytes", 1.0 / 1048576}};
  const auto unit = units.find(std::string_view(node.attribute("unit").value()));
  const double value = decimal_of(trimmed(node.text().get())) * (unit == units.end() ? 0 : unit->second);
  return value > 0 && value < 1e12 ? static_cast<long long>(value) : 0;
}

class LibvirtReader {
 public:
  LibvirtReader(const Source& source, Inventory& out) : source_(source), out_(out) {}

  void read(const pugi::xml_node& domain) {
    VirtualMachine vm;
    vm.name = domain.child("name").text().get();
    vm.hypervisor = std::string_view(domain.attribute("type").value()) == "xen" ? "xen" : "kvm";
    vm.place = source_.at_offset(domain.offset_debug());
    const auto vcpus = number_of(trimmed(domain.child("vcpu").text().get()), 10);
    vm.vcpus = vcpus && *vcpus > 0 && *vcpus < 100000 ? static_cast<int>(*vcpus) : 0;
    vm.memory_mib = memory_mib(domain.child("memory"));
    vm.has_huge_pages = !domain.child("memoryBacking").child("hugepages").empty();
    vm.is_reserved = *vm.has_huge_pages || !domain.child("memoryBacking").child("locked").empty();
    const auto pins = std::distance(domain.child("cputune").children("vcpupin").begin(),
                                    domain.child("cputune").children("vcpupin").end());
    vm.is_pinned = vm.vcpus > 0 && pins >= vm.vcpus;
    vm.is_numa_aligned = !domain.child("numatune").empty();
    read_iommu(domain, vm);
    read_controllers(domain.child("devices"));
    for (const auto& one : domain.child("devices").children()) read_device(one, vm);
    out_.vms.push_back(std::move(vm));
  }

 private:
  static void read_iommu(const pugi::xml_node& domain, VirtualMachine& vm) {
    const auto iommu = domain.child("devices").child("iommu");
    if (iommu.empty()) return;
    vm.has_device_translation = std::string_view(iommu.child("driver").attribute("iotlb").value()) == "on";
  }

  /// Buses behind a PCIe switch or an expander: there the guest sees who is near whom.
  void read_controllers(const pugi::xml_node& devices) {
    structured_.clear();
    for (const auto& one : devices.children("controller")) {
      const std::string_view model = one.attribute("model").value();
      if (model != "pcie-switch-downstream-port" && model != "pcie-expander-bus" &&
          model != "pcie-switch-upstream-port")
        continue;
      structured_[number_of(one.attribute("index").value()).value_or(-1)] = true;
    }
    // Root ports on an expander bus belong to it.
    for (const auto& one : devices.children("controller")) {
      if (std::string_view(one.attribute("model").value()) != "pcie-root-port") continue;
      const auto bus = number_of(one.child("address").attribute("bus").value()).value_or(0);
      if (structured_.contains(bus)) structured_[number_of(one.attribute("index").value()).value_or(-1)] = true;
    }
  }

  void read_device(const pugi::xml_node& node, VirtualMachine& vm) {
    const std::string_view name = node.name();
    const std::string_view type = node.attribute("type").value();
    HandedDevice one;
    one.place = source_.at_offset(node.offset_debug());
    if (name == "hostdev" && type == "pci") {
      one.host_address = address_of(node.child("source").child("address"));
    } else if (name == "hostdev" && type == "mdev") {
      one.mode = "vgpu";
    } else if (name == "interface" && type == "hostdev") {
      one.host_address = address_of(node.child("source").child("address"));
      one.mode = "sr-iov";
    } else if (name == "interface") {
      one.mode = "virtio";
    } else {
      return;
    }
    one.guest_address = address_of(node.child("address"));
    if (!one.guest_address.empty())
      one.is_below_switch =
          structured_.contains(number_of(node.child("address").attribute("bus").value()).value_or(-1));
    if (one.host_address.empty() && one.mode.empty()) {
      out_.findings.push_back(source_.warning(one.place, "a host device without the address of its source: left out"));
      return;
    }
    vm.devices.push_back(std::move(one));
  }

  const Source& source_;
  Inventory& out_;
  std::map<std::int64_t, bool> structured_;
};

}  // namespace

Result<void> read_libvirt(const Source& source, Inventory& out) {
  pugi::xml_document document;
  if (auto loaded = load_xml(source, document); !loaded) return loaded;
  LibvirtReader reader(source, out);
  const auto root = document.document_element();
  const std::string_view name = root.name();
  if (name == "domain") reader.read(root);
  if (name != "domain") {
    for (const auto& domain : root.children("domain")) reader.read(domain);
  }
  if (out.vms.empty())
    return tl::unexpected(
        Diagnostics{source.error(source.at(1), fmt::format("the XML begins with <{}>, expected <domain>", name),
                                 "`virsh dumpxml NAME` prints it")});
  return {};
}

namespace {

using nlohmann::json;

/// A member by its name, with a small or a capital first letter (govc changed it).
const json* member(const json& object, std::string name) {
  if (!object.is_object()) return nullptr;
  auto it = object.find(name);
  if (it == object.end() && !name.empty()) {
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    it = object.find(name);
  }
  return it == object.end() ? nullptr : &*it;
}

std::string text_of(const json& object, const char* name) {
  const auto* value = member(object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

int id_of(const json& object, const char* name) {
  const auto* value = member(object, name);
  if (value == nullptr) return 0;
  if (value->is_number_integer()) return static_cast<int>(value->get<std::int64_t>() & 0xffff);
  return value->is_string() ? static_cast<int>(number_of(value->get_ref<const std::string&>(), 16).value_or(0) & 0xffff)
                            : 0;
}

long long count_of(const json& object, const char* name) {
  const auto* value = member(object, name);
  if (value == nullptr || !value->is_number()) return 0;
  const double number = value->get<double>();
  return number > 0 && number < 1e12 ? static_cast<long long>(number) : 0;
}

const json& list_of(const json& object, const char* name) {
  static const json none = json::array();
  const auto* value = member(object, name);
  return value != nullptr && value->is_array() ? *value : none;
}

class GovcReader {
 public:
  GovcReader(const Source& source, Inventory& out) : source_(source), out_(out) {}

  Result<void> read(const json& document) {
    bool is_known = false;
    if (!list_of(document, "devices").empty()) {
      is_known = true;
      read_pci(list_of(document, "devices"), "pciId", "bridge", json(), "");
    }
    for (const auto& host : list_of(document, "hostSystems")) {
      is_known = true;
      read_host(host);
    }
    for (const auto& vm : list_of(document, "virtualMachines")) {
      is_known = true;
      read_vm(vm);
    }
    if (!is_known) is_known = read_bare(document);
    if (!list_of(document, "gpus").empty()) {
      is_known = true;
      read_gpus(list_of(document, "gpus"));
    }
    if (is_known) return {};
    return tl::unexpected(Diagnostics{
        source_.error(source_.at(1), "no host, no device and no virtual machine in this JSON",
                      "expected `govc host.info -json`, `govc vm.info -json`, `govc gpu.host.info -json` or "
                      "`govc gpu.vm.info -json`")});
  }

 private:
  /// One object by itself, as the API's JSON has it: a host, a machine, or a machine's `config`.
  bool read_bare(const json& object) {
    const auto type = text_of(object, "_typeName");
    const auto* config = member(object, "config");
    const auto* hardware = member(object, "hardware");
    if (hardware != nullptr && !list_of(*hardware, "pciDevice").empty()) {
      read_host(object);
    } else if (type == "VirtualMachineConfigInfo" || (hardware != nullptr && !list_of(*hardware, "device").empty())) {
      read_vm(json{{"name", text_of(object, "name")}, {"config", object}});
    } else if (config != nullptr && member(*config, "hardware") != nullptr) {
      read_vm(object);
    } else {
      return false;
    }
    return true;
  }

  void read_host(const json& host) {
    const auto* hardware = member(host, "hardware");
    const auto* config = member(host, "config");
    const auto before = out_.machines.size();
    if (hardware != nullptr)
      read_pci(list_of(*hardware, "pciDevice"), "id", "parentBridge",
               config == nullptr ? json() : list_of(*config, "pciPassthruInfo"), text_of(host, "name"));
    if (out_.machines.size() == before) return;
    auto& machine = out_.machines.back();
    if (hardware != nullptr) {
      if (const auto* cpu = member(*hardware, "cpuInfo"))
        machine.num_sockets = static_cast<int>(std::min<long long>(64, count_of(*cpu, "numCpuPackages")));
      for (const auto& package : list_of(*hardware, "cpuPkg")) {
        const auto vendor = text_of(package, "vendor");
        machine.processor.vendor = vendor == "intel" ? "GenuineIntel" : vendor == "amd" ? "AuthenticAMD" : vendor;
        machine.processor.name = text_of(package, "description");
      }
    }
  }

  void read_pci(const json& list, const char* id, const char* bridge, const json& passthrough,
                const std::string& name) {
    std::vector<PciDevice> devices;
    std::map<std::string, int> index;
    std::vector<std::string> above;
    for (const auto& one : list) {
      PciDevice device;
      device.address = pci_address(text_of(one, id));
      const int pci_class = id_of(one, "classId");
      device.vendor = id_of(one, "vendorId");
      device.device = id_of(one, "deviceId");
      device.model = text_of(one, "deviceName");
      device.place = source_.at(1);
      device.kind = pci_class == 0x0604 ? PciKind::bridge : pci_class >> 8 == 0x03 ? PciKind::gpu : PciKind::nic;
      const bool is_nic = pci_class >> 8 == 0x02 && device.vendor == 0x15b3;
      const bool is_gpu = device.kind == PciKind::gpu && device.vendor == 0x10de;
      if (device.address.empty() || (pci_class != 0x0604 && !is_nic && !is_gpu)) continue;
      if (is_nic) device.is_infiniband = pci_class == 0x0207;
      index[device.address] = static_cast<int>(devices.size());
      above.push_back(pci_address(text_of(one, bridge)));
      devices.push_back(std::move(device));
    }
    for (const auto& one : passthrough) {
      const auto found = index.find(pci_address(text_of(one, "id")));
      if (found != index.end() && count_of(one, "numVirtualFunction") > 0)
        out_.assumed.push_back(
            fmt::format("{} is cut into {} virtual functions", found->first, count_of(one, "numVirtualFunction")));
    }
    Machine machine;
    machine.name = name;
    machine.format = "govc";
    machine.place = source_.at(1);
    order(devices, above, index, machine);
    out_.machines.push_back(std::move(machine));
  }

  /// Parents before children; a parent that is not listed is the processor.
  static void order(std::vector<PciDevice>& devices, const std::vector<std::string>& above,
                    const std::map<std::string, int>& index, Machine& machine) {
    std::vector<int> moved(devices.size(), -1), depth(devices.size(), 0);
    std::vector<int> turn(devices.size());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      turn[i] = static_cast<int>(i);
      auto at = index.find(above[i]);
      for (int steps = 0; at != index.end() && steps < k_most_levels; ++steps) {
        ++depth[i];
        at = index.find(above[static_cast<std::size_t>(at->second)]);
      }
    }
    std::stable_sort(turn.begin(), turn.end(), [&](int a, int b) {
      return depth[static_cast<std::size_t>(a)] < depth[static_cast<std::size_t>(b)];
    });
    int gpus = 0;
    for (const int i : turn) {
      auto one = devices[static_cast<std::size_t>(i)];
      const auto parent = index.find(above[static_cast<std::size_t>(i)]);
      one.parent = parent == index.end() ? -1 : moved[static_cast<std::size_t>(parent->second)];
      if (one.kind == PciKind::gpu) one.gpu = gpus++;
      moved[static_cast<std::size_t>(i)] = static_cast<int>(machine.devices.size());
      machine.devices.push_back(std::move(one));
    }
    fold_ports(machine.devices);
  }

  void read_vm(const json& object) {
    VirtualMachine vm;
    vm.name = text_of(object, "name");
    if (const auto* config = member(object, "config"); vm.name.empty() && config != nullptr)
      vm.name = text_of(*config, "name");
    vm.hypervisor = "esxi";
    vm.place = source_.at(1);
    const auto* config = member(object, "config");
    if (config == nullptr) return;
    if (const auto* hardware = member(*config, "hardware")) {
      vm.vcpus = static_cast<int>(std::min<long long>(count_of(*hardware, "numCPU"), 100000));
      vm.memory_mib = count_of(*hardware, "memoryMB");
      for (const auto& device : list_of(*hardware, "device")) read_vm_device(device, vm);
    }
    if (const auto* locked = member(*config, "memoryReservationLockedToMax"); locked != nullptr && locked->is_boolean())
      vm.is_reserved = locked->get<bool>();
    out_.vms.push_back(std::move(vm));
  }

  void read_vm_device(const json& device, VirtualMachine& vm) {
    static const std::map<std::string, std::string> cards{
        {"VirtualVmxnet3", "vmxnet3"}, {"VirtualVmxnet3Vrdma", "pvrdma"}, {"VirtualSriovEthernetCard", "sr-iov"}};
    HandedDevice one;
    one.place = source_.at(1);
    if (const auto card = cards.find(text_of(device, "_typeName")); card != cards.end()) one.mode = card->second;
    if (const auto* backing = member(device, "backing")) {
      const auto type = text_of(*backing, "_typeName");
      if (has(type, "VmiopBacking")) {
        one.mode = "vgpu";
        one.profile = text_of(*backing, "vgpu");
      } else if (has(type, "VirtualPCIPassthrough")) {
        one.host_address = pci_address(text_of(*backing, has(type, "Dynamic") ? "assignedId" : "id"));
      } else if (one.mode.empty()) {
        return;
      }
    } else if (one.mode.empty()) {
      return;
    }
    vm.devices.push_back(std::move(one));
  }

  void read_gpus(const json& list) {
    VirtualMachine vm;
    vm.name = "vm";
    vm.hypervisor = "esxi";
    vm.place = source_.at(1);
    for (const auto& gpu : list) {
      HandedDevice one;
      one.place = source_.at(1);
      const auto summary = text_of(gpu, "summary");
      const auto words = words_of(summary);
      if (has(summary, "vGPU") && !words.empty()) {
        one.mode = "vgpu";
        one.profile = words.back();
      }
      vm.devices.push_back(std::move(one));
    }
    out_.vms.push_back(std::move(vm));
  }

  const Source& source_;
  Inventory& out_;
};

}  // namespace

Result<void> read_govc(const Source& source, Inventory& out) {
  const auto document = load_json(source);
  if (!document) return tl::unexpected(document.error());
  return GovcReader(source, out).read(*document);
}

}  // namespace fabricast::import
