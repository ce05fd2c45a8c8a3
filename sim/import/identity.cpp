// SPDX-License-Identifier: Apache-2.0
#include "import/identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/adapter_numbers.hpp"
#include "base/gpu_numbers.hpp"
#include "import/source.hpp"

namespace fabricast::import {

namespace {

/// An adapter that stands for a family at a rate.
struct AdapterEntry {
  const char* family;
  bool is_infiniband;
  double gbit_per_s;
  const char* name;
  PcieRate card;
};
const std::array k_adapters{
    AdapterEntry{"connectx-3", true, 54.54, "connectx-3-fdr", {3, 8}},
    AdapterEntry{"connectx-3", true, 32, "connectx-3-qdr", {3, 8}},
    AdapterEntry{"connectx-3", false, 40, "connectx-3-pro-40g", {3, 8}},
    AdapterEntry{"connectx-3-pro", true, 54.54, "connectx-3-fdr", {3, 8}},
    AdapterEntry{"connectx-3-pro", false, 40, "connectx-3-pro-40g", {3, 8}},
    AdapterEntry{"connect-ib", true, 54.54, "connect-ib", {3, 16}},
    AdapterEntry{"connectx-4", true, 100, "connectx-4-edr", {3, 16}},
    AdapterEntry{"connectx-4", false, 100, "connectx-4-100g", {3, 16}},
    AdapterEntry{"connectx-4-lx", false, 25, "connectx-4-lx-25g", {3, 8}},
    AdapterEntry{"connectx-5", true, 100, "connectx-5-edr", {3, 16}},
    AdapterEntry{"connectx-5", false, 100, "connectx-5-100g", {4, 16}},
    AdapterEntry{"connectx-6", true, 200, "connectx-6-hdr", {4, 16}},
    AdapterEntry{"connectx-6", true, 100, "connectx-6-hdr100", {4, 16}},
    AdapterEntry{"connectx-6", false, 200, "connectx-6-200g", {4, 16}},
    AdapterEntry{"connectx-6-dx", false, 100, "connectx-6-dx-100g", {4, 16}},
    AdapterEntry{"connectx-6-dx", false, 200, "connectx-6-dx-200g", {4, 16}},
    AdapterEntry{"connectx-7", true, 400, "connectx-7-ndr", {5, 16}},
    AdapterEntry{"connectx-7", true, 200, "connectx-7-ndr200", {5, 16}},
    AdapterEntry{"connectx-7", false, 400, "connectx-7-400g", {5, 16}},
    AdapterEntry{"connectx-7", false, 200, "connectx-7-200g", {5, 16}},
    AdapterEntry{"bluefield-3", true, 400, "bluefield-3-ndr", {5, 16}},
    AdapterEntry{"bluefield-3", true, 200, "connectx-7-ndr200", {5, 16}},
    AdapterEntry{"bluefield-3", false, 400, "bluefield-3-400g", {5, 16}},
    AdapterEntry{"bluefield-3", false, 200, "connectx-7-200g", {5, 16}},
    AdapterEntry{"connectx-8", true, 800, "connectx-8-xdr", {6, 16}},
    AdapterEntry{"connectx-8", true, 400, "connectx-7-ndr", {5, 16}},
    AdapterEntry{"connectx-8", false, 800, "connectx-8-2x400g", {6, 16}},
    AdapterEntry{"connectx-8", false, 400, "connectx-7-400g", {5, 16}},
};

struct ProcessorEntry {
  const char* vendor;
  int family, model;
  const char* name;
  const char* assumed;
};
/// CPUID family and model.
constexpr std::array k_processors{
    ProcessorEntry{"GenuineIntel", 6, 45, "xeon-sandybridge", ""},
    ProcessorEntry{"GenuineIntel", 6, 62, "xeon-ivybridge", ""},
    ProcessorEntry{"GenuineIntel", 6, 63, "xeon-haswell", ""},
    ProcessorEntry{"GenuineIntel", 6, 79, "xeon-broadwell", ""},
    ProcessorEntry{"GenuineIntel", 6, 85, "xeon-skylake", ""},
    ProcessorEntry{"GenuineIntel", 6, 106, "xeon-icelake", ""},
    ProcessorEntry{"GenuineIntel", 6, 108, "xeon-icelake", ""},
    ProcessorEntry{"GenuineIntel", 6, 143, "xeon-sapphirerapids", ""},
    ProcessorEntry{"GenuineIntel", 6, 207, "xeon-emeraldrapids", ""},
    ProcessorEntry{"GenuineIntel", 6, 173, "xeon-graniterapids", ""},
    ProcessorEntry{"AuthenticAMD", 23, 1, "epyc-naples", ""},
    ProcessorEntry{"AuthenticAMD", 23, 49, "epyc-rome", ""},
    ProcessorEntry{"AuthenticAMD", 25, 1, "epyc-milan", ""},
    ProcessorEntry{"AuthenticAMD", 25, 17, "epyc-genoa", ""},
    ProcessorEntry{"AuthenticAMD", 25, 160, "epyc-genoa", "Bergamo as Genoa"},
    ProcessorEntry{"AuthenticAMD", 26, 2, "epyc-genoa", "Turin as Genoa"},
    ProcessorEntry{"AuthenticAMD", 26, 17, "epyc-genoa", "Turin as Genoa"},
};

struct WordEntry {
  const char* word;
  const char* name;
};
constexpr std::array k_processor_words{
    WordEntry{"E5-26", "xeon-broadwell"},
    WordEntry{"EPYC 7002", "epyc-rome"},
    WordEntry{"EPYC 77", "epyc-rome"},
    WordEntry{"EPYC 9", "epyc-genoa"},
    WordEntry{"Platinum 81", "xeon-skylake"},
    WordEntry{"Platinum 82", "xeon-cascadelake"},
    WordEntry{"Platinum 83", "xeon-icelake"},
    WordEntry{"Platinum 84", "xeon-sapphirerapids"},
    WordEntry{"PLATINUM 85", "xeon-emeraldrapids"},
    WordEntry{"Gold 61", "xeon-skylake"},
    WordEntry{"Gold 62", "xeon-cascadelake"},
    WordEntry{"Gold 63", "xeon-icelake"},
};

struct SwitchEntry {
  int devid;
  const char* word;
  double gbit_per_s;
  const char* name;
  int ports;
};
/// Device numbers of InfiniBand switch chips, words of their descriptions, rate of a port.
constexpr std::array k_switches{
    SwitchEntry{0xbd36, "IS5", 32, "is5035", 36},   SwitchEntry{0xc738, "SX60", 54.54, "sx6036", 36},
    SwitchEntry{0xcb20, "SB7", 100, "sb7800", 36},  SwitchEntry{0xcf08, "SB78", 100, "sb7800", 36},
    SwitchEntry{0xd2f0, "QM87", 200, "qm8700", 40}, SwitchEntry{0xd2f2, "QM97", 400, "qm9700", 64},
    SwitchEntry{0xd2f4, "Q34", 800, "q3400", 144},
};
constexpr std::array k_ethernet_switches{
    SwitchEntry{0, "", 10, "ethernet-10g-tor", 48}, SwitchEntry{0, "", 25, "ethernet-25g-tor", 48},
    SwitchEntry{0, "", 40, "ethernet-40g-tor", 32}, SwitchEntry{0, "", 100, "sn2700", 32},
    SwitchEntry{0, "", 200, "sn3700", 32},          SwitchEntry{0, "", 400, "ethernet-400g-leaf", 32},
    SwitchEntry{0, "", 800, "sn5600", 64},
};

/// The entry whose rate is nearest from above, else the fastest.
template <typename Entries>
const auto* by_rate(const Entries& entries, double gbit_per_s) {
  const auto* best = &entries.front();
  for (const auto& one : entries) {
    const bool fits = one.gbit_per_s >= gbit_per_s * 0.97;
    const bool best_fits = best->gbit_per_s >= gbit_per_s * 0.97;
    if ((fits && (!best_fits || one.gbit_per_s < best->gbit_per_s)) ||
        (!best_fits && one.gbit_per_s > best->gbit_per_s))
      best = &one;
  }
  return best;
}

/// What a GPU of the tables can do.
PcieRate card_of(std::string_view name) {
  const auto known =
      std::ranges::find(devices::k_gpus, name, [](const devices::GpuEntry& one) { return std::string_view(one.name); });
  return known == devices::k_gpus.end() ? PcieRate{} : PcieRate{known->generation, known->width};
}

/// The adapter of a family that its rate and protocol are nearest to.
Identity adapter_of_family(const devices::AdapterNumbers& known, const PciDevice& device, double rate) {
  const std::string_view family = known.family;
  const bool is_bond = std::ranges::any_of(device.ports, [](const auto& port) { return has(port.name, "bond"); });
  if (is_bond && family == "connectx-7") return {"connectx-7-bond-2x200", "", {5, 16}};
  const bool is_infiniband = device.is_infiniband.value_or(true);
  std::vector<AdapterEntry> candidates, others;
  for (const auto& adapter : k_adapters)
    if (adapter.family == family) (adapter.is_infiniband == is_infiniband ? candidates : others).push_back(adapter);
  std::string assumed = known.assumed;
  if (candidates.empty()) candidates = others;
  if (rate == 0)
    assumed += fmt::format("{}the source names no rate: the fastest of the family", assumed.empty() ? "" : "; ");
  const auto* best = by_rate(candidates, rate > 0 ? rate : 1e6);
  if (family == "bluefield-3" && !std::string_view(best->name).starts_with(family))
    assumed += "BlueField-3 as ConnectX-7";
  if (rate > 0 && std::abs(best->gbit_per_s / rate - 1) > 0.1)
    assumed +=
        fmt::format("{}{:g} Gb/s as an adapter of {:g} Gb/s", assumed.empty() ? "" : "; ", rate, best->gbit_per_s);
  return {best->name, assumed, best->card};
}

Identity adapter_of_rate(double gbit_per_s, bool is_infiniband) {
  std::vector<AdapterEntry> candidates;
  for (const auto& one : k_adapters) {
    if (one.is_infiniband == is_infiniband) candidates.push_back(one);
  }
  const auto* best = by_rate(candidates, gbit_per_s);
  return {best->name, fmt::format("no source names the adapter: {} has {:g} Gb/s", best->name, best->gbit_per_s),
          best->card};
}

}  // namespace

Identity gpu_identity(const PciDevice& device) {
  for (const auto& one : devices::k_amd_gpus)
    if (device.vendor == 0x1002 && device.device == one.device) return {one.name, "", {one.generation, one.width}};
  for (const auto& one : devices::k_gpus)
    if (device.vendor == 0x10de && device.device == one.device) return {one.name, "", {one.generation, one.width}};
  for (const auto& one : devices::k_gpu_words) {
    if (!has(device.model, one.first) || !has(device.model, one.second)) continue;
    return {one.name, fmt::format("by its name '{}'", device.model), card_of(one.name)};
  }
  for (const auto& one : devices::k_capabilities) {
    const bool is_nvidia = device.vendor == 0x10de || device.vendor == 0;
    if (!is_nvidia || device.compute_capability != one.capability) continue;
    const bool is_superchip = device.has_c2c && *one.superchip != '\0';
    const std::string name = is_superchip ? one.superchip : device.nvlinks.empty() ? one.pcie : one.sxm;
    const bool is_named = device.device != 0;
    return {name,
            is_named
                ? fmt::format("PCI device {:04x}:{:04x} is not in the catalogue: {} has its compute capability {}.{}",
                              device.vendor, device.device, name, one.capability / 10, one.capability % 10)
                : fmt::format("the dump names no PCI device: {} has the compute capability {}.{}", name,
                              one.capability / 10, one.capability % 10),
            is_superchip ? card_of(name) : PcieRate{one.generation, 16}};
  }
  return {};
}

Identity hca_identity(const PciDevice& device) {
  if (!device.type.empty()) return {device.type, "", device.type == "efa-100g-gdr" ? PcieRate{3, 16} : PcieRate{5, 16}};
  double rate = 0;
  for (const auto& port : device.ports) rate = std::max(rate, port.gbit_per_s);
  constexpr int k_amazon = 0x1d0f;
  const bool is_efa = device.vendor == k_amazon && device.device >> 4 == 0xefa;
  const auto* known = devices::adapter_of(device.vendor, device.device);
  const std::string_view family = known == nullptr ? "" : known->family;
  if (family == "slingshot-11") return {"slingshot-11", "", {4, 16}};
  if (family == "gvnic")
    return rate > 150 ? Identity{"gvnic-200g", "", {5, 16}}
                      : Identity{"ethernet-32g", "a virtual adapter of Google as one of 32 Gb/s", {5, 16}};
  if (family == "bcm57608")
    return {"bcm57608-400g", rate > 0 && rate < 300 ? "an adapter of 200 Gb/s as one of 400" : "", {5, 16}};
  if (is_efa)
    return {family == "efa-100g" ? "efa-100g" : "efa-100g-gdr",
            rate > 110 ? fmt::format("an EFA of {:g} Gb/s as one of 100", rate) : "",
            {3, 16}};
  if (device.vendor == k_amazon) return {"ena-25g", "an elastic adapter as one of 25 Gb/s", {3, 8}};
  if (known != nullptr) return adapter_of_family(*known, device, rate);
  if (rate > 0) {
    auto found = adapter_of_rate(rate, device.is_infiniband.value_or(false));
    found.assumed = fmt::format("PCI device {:04x}:{:04x} is not in the catalogue: an adapter of its rate",
                                device.vendor, device.device);
    // The link is the adapter's own, not that of the one that stands for it.
    if (device.slot.generation > 0 && device.slot.width > 0) found.card = device.slot;
    return found;
  }
  return {};
}

Identity processor_identity(const ProcessorSeen& processor) {
  for (const auto& one : k_processors) {
    if (processor.vendor != one.vendor || processor.family != one.family || processor.model != one.model) continue;
    if (std::string_view(one.name) == "xeon-skylake" && processor.stepping >= 5) return {"xeon-cascadelake", "", {}};
    const bool is_open = std::string_view(one.name) == "xeon-skylake" && processor.stepping < 0;
    return {one.name, is_open ? "CPUID model 85 is Skylake or Cascade Lake: Skylake" : one.assumed, {}};
  }
  for (const auto& one : k_processor_words) {
    if (has(processor.name, one.word)) return {one.name, fmt::format("by its name '{}'", processor.name), {}};
  }
  return {};
}

Identity nvswitch_identity(const std::string& gpu, int compute_capability) {
  const bool is_volta = compute_capability == 70 || gpu.starts_with("v100");
  const bool is_ampere = compute_capability == 80 || gpu.starts_with("a100") || gpu.starts_with("a800");
  const bool is_blackwell = compute_capability == 100 || compute_capability == 103 || gpu.starts_with("b200") ||
                            gpu.starts_with("b300") || gpu.starts_with("gb");
  return {is_volta ? "nvswitch-1" : is_ampere ? "nvswitch-2" : is_blackwell ? "nvswitch-4" : "nvswitch-3", "", {}};
}

Identity switch_identity(int devid, const std::string& description, double gbit_per_s, bool is_infiniband) {
  if (!is_infiniband) {
    const auto* best = by_rate(k_ethernet_switches, gbit_per_s);
    return {best->name,
            fmt::format("nothing names the switches: {} has ports of {:g} Gb/s", best->name, best->gbit_per_s),
            {}};
  }
  for (const auto& one : k_switches)
    if (devid == one.devid) return {one.name, "", {}};
  for (const auto& one : k_switches)
    if (has(description, one.word)) return {one.name, "", {}};
  const auto* best = by_rate(k_switches, gbit_per_s > 0 ? gbit_per_s : 100);
  return {best->name,
          fmt::format("nothing names the switches: {} has ports of {:g} Gb/s", best->name, best->gbit_per_s),
          {}};
}

int switch_ports(const std::string& name) {
  for (const auto& one : k_switches) {
    if (name == one.name) return one.ports;
  }
  for (const auto& one : k_ethernet_switches) {
    if (name == one.name) return one.ports;
  }
  return 0;
}

Identity usual_processor(int pcie_generation, std::string_view vendor) {
  const bool is_amd = vendor == "AuthenticAMD" || (vendor != "GenuineIntel" && pcie_generation == 4);
  const char* name = pcie_generation >= 5   ? (is_amd ? "epyc-genoa" : "xeon-sapphirerapids")
                     : pcie_generation == 4 ? (is_amd ? "epyc-milan" : "xeon-icelake")
                                            : (is_amd ? "epyc-naples" : "xeon-skylake");
  return {name, fmt::format("no source names the processor: {}, as hosts with PCIe {} had", name, pcie_generation), {}};
}

Identity adapter_of_listing(int devid, double gbit_per_s, bool is_infiniband) {
  const auto by_its_rate = adapter_of_rate(gbit_per_s, is_infiniband);
  if (devices::adapter_of(devices::k_mellanox, devid) == nullptr) return by_its_rate;
  PciDevice device;
  device.vendor = devices::k_mellanox;
  device.device = devid;
  device.is_infiniband = is_infiniband;
  device.ports.push_back({"", 0, gbit_per_s});
  auto found = hca_identity(device);
  const auto one = std::ranges::find(k_adapters, found.name, [](const AdapterEntry& entry) { return entry.name; });
  const bool is_too_slow = one != k_adapters.end() && one->gbit_per_s < 0.9 * gbit_per_s;
  return is_too_slow ? by_its_rate : found;
}

std::vector<std::pair<std::string, PcieRate>> all_identities() {
  std::vector<std::pair<std::string, PcieRate>> out;
  for (const auto& one : devices::k_gpus) out.emplace_back(one.name, PcieRate{one.generation, one.width});
  for (const auto& one : devices::k_gpu_words) out.emplace_back(one.name, card_of(one.name));
  for (const auto& one : devices::k_capabilities) {
    out.emplace_back(one.sxm, PcieRate{one.generation, 16});
    out.emplace_back(one.pcie, PcieRate{one.generation, 16});
    if (*one.superchip != '\0') out.emplace_back(one.superchip, card_of(one.superchip));
  }
  for (const auto& one : k_adapters) out.emplace_back(one.name, one.card);
  for (const auto& one : k_processors) out.emplace_back(one.name, PcieRate{});
  for (const auto& one : k_processor_words) out.emplace_back(one.name, PcieRate{});
  for (const auto& name : all_switches()) out.emplace_back(name, PcieRate{});
  for (const auto* name :
       {"nvswitch-1", "nvswitch-2", "nvswitch-3", "nvswitch-4", "efa-100g", "efa-100g-gdr", "connectx-7-bond-2x200",
        "efa-2x200g", "efa-4x100g", "slingshot-11", "gvnic-200g", "ethernet-32g", "ena-25g", "bcm57608-400g"})
    out.emplace_back(name, PcieRate{});
  for (const auto& one : devices::k_amd_gpus) out.emplace_back(one.name, PcieRate{one.generation, one.width});
  return out;
}

std::vector<std::string> all_switches() {
  std::vector<std::string> out;
  for (const auto& one : k_switches) out.emplace_back(one.name);
  for (const auto& one : k_ethernet_switches) out.emplace_back(one.name);
  return out;
}

}  // namespace fabricast::import
