// SPDX-License-Identifier: Apache-2.0
// The file to inject into a VM (NCCL_TOPO_FILE): the host's <cpu> and <pci> tree with the guest's PCI addresses,
// without what NCCL finds itself (<gpu>, <nic>, <nvlink>), as NCCL's maintainers describe it [NVIDIA/nccl-tests issue
// 86].
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "fabricast/import.hpp"
#include "import/merge.hpp"
#include "import/source.hpp"

namespace fabricast {

namespace {

using namespace import;

class GuestWriter {
 public:
  GuestWriter(const Machine& machine, const std::map<std::string, std::string>& guest)
      : machine_(machine), guest_(guest) {}

  std::string write() {
    keep_.assign(machine_.devices.size(), false);
    for (std::size_t i = 0; i < machine_.devices.size(); ++i) {
      if (!guest_.contains(machine_.devices[i].address)) continue;
      for (int at = static_cast<int>(i); at >= 0; at = machine_.devices[static_cast<std::size_t>(at)].parent)
        keep_[static_cast<std::size_t>(at)] = true;
    }
    std::map<int, std::string> by_node;
    for (std::size_t i = 0; i < machine_.devices.size(); ++i) {
      if (keep_[i] && machine_.devices[i].parent < 0) by_node[machine_.devices[i].numa] += element(i, 4);
    }
    std::string out = "<system version=\"1\">\n";
    for (const auto& [numa, inside] : by_node)
      out += fmt::format(
          "  <cpu numaid=\"{}\" arch=\"x86_64\" vendor=\"{}\" familyid=\"{}\" modelid=\"{}\">\n{}  </cpu>\n", numa,
          machine_.processor.vendor, family(), machine_.processor.model, inside);
    return out + "</system>\n";
  }

 private:
  /// As NCCL counts families: the extended part shifted by four.
  [[nodiscard]] int family() const {
    const int f = machine_.processor.family;
    return f > 15 ? 15 + ((f - 15) << 4) : f;
  }

  std::string element(std::size_t i, int indent) {
    static constexpr std::array<const char*, 7> speeds{
        "", "2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
    const auto& one = machine_.devices[i];
    const std::string pad(static_cast<std::size_t>(indent), ' ');
    const char* pci_class = one.kind == PciKind::bridge        ? "0x060400"
                            : one.kind == PciKind::gpu         ? "0x030200"
                            : one.is_infiniband.value_or(true) ? "0x020700"
                                                               : "0x020000";
    const auto mapped = guest_.find(one.address);
    // A switch that the guest does not have keeps an address that no device of the guest can have.
    const auto address = mapped != guest_.end()
                             ? mapped->second
                             : "ffff" + one.address.substr(std::min<std::size_t>(4, one.address.size()));
    auto rate = one.slot;
    if (rate.generation == 0) rate.generation = one.trained.generation;
    if (rate.width == 0) rate.width = one.trained.width;
    std::string inside;
    for (std::size_t j = i + 1; j < machine_.devices.size(); ++j) {
      if (keep_[j] && machine_.devices[j].parent == static_cast<int>(i)) inside += element(j, indent + 2);
    }
    auto head =
        fmt::format("{}<pci busid=\"{}\" class=\"{}\" link_speed=\"{}\" link_width=\"{}\"", pad, address, pci_class,
                    speeds[static_cast<std::size_t>(std::clamp(rate.generation == 0 ? 4 : rate.generation, 1, 6))],
                    rate.width == 0 ? 16 : rate.width);
    return inside.empty() ? head + "/>\n" : head + ">\n" + inside + pad + "</pci>\n";
  }

  const Machine& machine_;
  const std::map<std::string, std::string>& guest_;
  std::vector<bool> keep_;
};

}  // namespace

Result<ImportedCluster> guest_topology_xml(const std::vector<ClusterSource>& sources,
                                           const std::vector<std::string>& map) {
  auto read = import::read_sources(sources);
  if (!read) return tl::unexpected(read.error());
  auto& inventory = *read;
  merge_machines(inventory);
  check_guests(inventory);
  if (inventory.machines.empty() || inventory.machines.front().devices.empty())
    return tl::unexpected(Diagnostics{make_error("no source shows the host's PCIe tree",
                                                 "give the dump of the bare host with --host (NCCL_TOPO_DUMP_FILE)")});
  std::map<std::string, std::string> guest;
  for (const auto& vm : inventory.vms) {
    for (const auto& one : vm.devices) {
      if (!one.host_address.empty() && !one.guest_address.empty()) guest[one.host_address] = one.guest_address;
    }
    break;  // a file is for one machine: the first
  }
  for (const auto& pair : map) {
    const auto equals = pair.find('=');
    const auto from = pci_address(std::string_view(pair).substr(0, equals));
    const auto to =
        equals == std::string::npos ? std::string() : pci_address(std::string_view(pair).substr(equals + 1));
    if (from.empty() || to.empty())
      return tl::unexpected(
          Diagnostics{make_error(fmt::format("'{}' is not HOST=GUEST", pair), "e.g. 0000:18:00.0=0000:0b:00.0")});
    guest[from] = to;
  }
  if (guest.empty())
    return tl::unexpected(Diagnostics{make_error("nothing says which address a device has in the guest",
                                                 "give the machine with --vms (virsh dumpxml), or --map HOST=GUEST")});
  ImportedCluster out;
  out.yaml = GuestWriter(inventory.machines.front(), guest).write();
  out.findings = std::move(inventory.findings);
  return out;
}

}  // namespace fabricast
