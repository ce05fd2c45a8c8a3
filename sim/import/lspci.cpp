// SPDX-License-Identifier: Apache-2.0
// `lspci -nnvv` (or -vvv): addresses, numbers, LnkCap, LnkSta, ATSCtl, ACSCtl, NUMA node. The tree comes from the
// bridges' secondary and subordinate buses, or from a picture of `lspci -tv`, which says nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "import/source.hpp"

namespace fabricast::import {

namespace {

/// What `[1234]` or `[12:34]` in brackets is: the class first, then vendor and device.
void read_numbers(std::string_view text, PciDevice& one, int& pci_class) {
  for (std::size_t open = text.find('['); open != std::string_view::npos; open = text.find('[', open + 1)) {
    const auto close = text.find(']', open);
    if (close == std::string_view::npos) return;
    const auto inside = text.substr(open + 1, close - open - 1);
    if (inside.size() == 4 && pci_class == 0) pci_class = static_cast<int>(number_of(inside, 16).value_or(0));
    if (inside.size() == 9 && inside[4] == ':') {
      one.vendor = static_cast<int>(number_of(inside.substr(0, 4), 16).value_or(0));
      one.device = static_cast<int>(number_of(inside.substr(5), 16).value_or(0));
    }
  }
}

/// "05:01.0 Class 0604: Device 10b5:9716" or "05:01.0 0604: 10b5:9716", as `lspci -n` writes them.
void read_bare_numbers(std::string_view text, PciDevice& one, int& pci_class) {
  const auto words = words_of(text);
  std::size_t at = 1;
  if (at < words.size() && words[at] == "Class") ++at;
  const auto is_hex = [](std::string_view word) {
    return word.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  };
  if (at >= words.size() || words[at].size() != 5 || !words[at].ends_with(':') || !is_hex(words[at].substr(0, 4)))
    return;
  pci_class = static_cast<int>(number_of(words[at].substr(0, 4), 16).value_or(0));
  if (++at < words.size() && words[at] == "Device") ++at;
  if (at >= words.size() || words[at].size() != 9 || words[at][4] != ':') return;
  one.vendor = static_cast<int>(number_of(words[at].substr(0, 4), 16).value_or(0));
  one.device = static_cast<int>(number_of(words[at].substr(5), 16).value_or(0));
}

struct WordedDevice {
  const char* words;
  int vendor, device;
};
/// Names that lspci prints in place of numbers [pci.ids], the longer ones first; GPUs are known by their model.
constexpr std::array k_worded{
    WordedDevice{"[ConnectX-3 Pro]", 0x15b3, 0x1007},
    WordedDevice{"[ConnectX-3]", 0x15b3, 0x1003},
    WordedDevice{"[Connect-IB]", 0x15b3, 0x1011},
    WordedDevice{"[ConnectX-4 Lx", 0x15b3, 0x1015},
    WordedDevice{"[ConnectX-4", 0x15b3, 0x1013},
    WordedDevice{"[ConnectX-5 Ex", 0x15b3, 0x1019},
    WordedDevice{"[ConnectX-5", 0x15b3, 0x1017},
    WordedDevice{"[ConnectX-6 Dx", 0x15b3, 0x101d},
    WordedDevice{"[ConnectX-6 Lx", 0x15b3, 0x101f},
    WordedDevice{"[ConnectX-6", 0x15b3, 0x101b},
    WordedDevice{"mlx5Gen Virtual", 0x15b3, 0x101e},
    WordedDevice{"[ConnectX-7", 0x15b3, 0x1021},
    WordedDevice{"[ConnectX-8", 0x15b3, 0x1023},
    WordedDevice{"BlueField-2", 0x15b3, 0xa2d6},
    WordedDevice{"BlueField-3", 0x15b3, 0xa2dc},
    WordedDevice{"Mellanox", 0x15b3, 0},
    WordedDevice{"NVIDIA", 0x10de, 0},
    WordedDevice{"nVidia", 0x10de, 0},
    WordedDevice{"Advanced Micro Devices", 0x1002, 0},
    WordedDevice{"ATI Technologies", 0x1002, 0},
};

/// Vendor, device and class of a line that names them.
void read_words(std::string_view text, PciDevice& one, int& pci_class) {
  for (const auto& known : k_worded) {
    if (one.vendor != 0 || !has(text, known.words)) continue;
    one.vendor = known.vendor;
    one.device = known.device;
  }
  if (has(text, "VGA compatible") && pci_class == 0) pci_class = one.vendor == 0x1002 ? 0x0300 : 0x0302;
}

int class_by_words(std::string_view text) {
  if (has(text, "PCI bridge")) return 0x0604;
  if (has(text, "Processing accelerators")) return 0x1200;
  if (has(text, "3D controller") || has(text, "VGA compatible")) return 0x0302;
  if (has(text, "Infiniband controller") || has(text, "InfiniBand")) return 0x0207;
  if (has(text, "Ethernet controller")) return 0x0200;
  return 0;
}

/// "Speed 16GT/s (downgraded), Width x8 (downgraded)"
PcieRate link_of(std::string_view text) {
  PcieRate rate;
  if (const auto at = text.find("Speed "); at != std::string_view::npos)
    rate.generation = generation_of_rate(decimal_of(text.substr(at + 6)));
  if (const auto at = text.find("Width x"); at != std::string_view::npos)
    rate.width = static_cast<int>(std::clamp<std::int64_t>(number_of(text.substr(at + 7), 10).value_or(0), 0, 32));
  return rate;
}

struct Entry {
  PciDevice device;
  int pci_class = 0;
  int domain = 0, bus = 0, secondary = -1, subordinate = -1;
};

int bus_of(const std::string& address) { return static_cast<int>(number_of(address.substr(5, 2), 16).value_or(0)); }
int domain_of(const std::string& address) { return static_cast<int>(number_of(address.substr(0, 4), 16).value_or(0)); }

void read_detail(std::string_view line, Entry& entry) {
  auto& one = entry.device;
  if (has(line, "LnkCap:")) one.slot = link_of(line);
  if (has(line, "LnkSta:")) one.trained = link_of(line);
  if (const auto at = line.find("NUMA node:"); at != std::string_view::npos)
    one.numa =
        static_cast<int>(std::clamp<std::int64_t>(number_of(trimmed(line.substr(at + 10))).value_or(-1), -1, 64));
  if (has(line, "ATSCtl:")) one.has_ats = has(line, "Enable+");
  if (has(line, "ACSCtl:")) one.redirects = has(line, "ReqRedir+");
  if (has(line, "Bus:") && has(line, "secondary=")) {
    const auto value = [&](std::string_view key) {
      return static_cast<int>(number_of(line.substr(line.find(key) + key.size(), 2), 16).value_or(-1));
    };
    entry.secondary = value("secondary=");
    entry.subordinate = has(line, "subordinate=") ? value("subordinate=") : entry.secondary;
  }
  if (has(line, "Subsystem:")) {
    PciDevice other;
    int ignored = 1;
    read_numbers(line, other, ignored);
    one.subsystem = other.device;
  }
  if (has(line, "Virtual Function")) one.is_virtual_function = true;
}

/// The bridge with the narrowest range of buses that holds `bus`.
int bridge_above(const std::vector<Entry>& entries, const Entry& below) {
  int best = -1;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& one = entries[i];
    if (one.secondary < 0 || one.domain != below.domain || below.bus < one.secondary || below.bus > one.subordinate)
      continue;
    if (&one == &below) continue;
    const auto width = [&](const Entry& e) { return e.subordinate - e.secondary; };
    const bool is_narrower = best < 0 || one.secondary > entries[static_cast<std::size_t>(best)].secondary ||
                             width(one) < width(entries[static_cast<std::size_t>(best)]);
    if (is_narrower) best = static_cast<int>(i);
  }
  return best;
}

/// AMD's display adapters (class 0300) show a console; its GPUs that compute have class 0380 or 1200.
bool is_gpu_entry(const Entry& e) {
  if (e.pci_class == 0x1200) return e.device.vendor == 0x1002;
  return e.pci_class >> 8 == 0x03 &&
         (e.device.vendor == 0x10de || (e.device.vendor == 0x1002 && e.pci_class != 0x0300));
}

/// Entries to a machine: bridges on the way to a GPU or adapter, parents first.
void make_machine(const Source& source, std::vector<Entry> entries, const char* format, Inventory& out) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.domain, a.bus) < std::pair(b.domain, b.bus);
  });
  std::vector<int> parent(entries.size());
  std::vector<bool> wanted(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    parent[i] = bridge_above(entries, entries[i]);
    // A parent's bus is smaller: what the list says otherwise is no tree.
    if (parent[i] >= 0 && entries[static_cast<std::size_t>(parent[i])].bus >= entries[i].bus) parent[i] = -1;
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool is_nic =
        entries[i].pci_class == 0x0207 || (entries[i].pci_class == 0x0200 && entries[i].device.vendor == 0x15b3);
    if (!is_nic && !is_gpu_entry(entries[i])) continue;
    for (int at = static_cast<int>(i); at >= 0 && !wanted[static_cast<std::size_t>(at)];
         at = parent[static_cast<std::size_t>(at)])
      wanted[static_cast<std::size_t>(at)] = true;
  }
  Machine machine;
  machine.format = format;
  machine.place = source.at(1);
  std::vector<int> moved(entries.size(), -1);
  int gpus = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!wanted[i]) continue;
    auto one = entries[i].device;
    one.kind = entries[i].pci_class == 0x0604 ? PciKind::bridge
               : is_gpu_entry(entries[i])     ? PciKind::gpu
                                              : PciKind::nic;
    if (one.kind == PciKind::gpu) one.gpu = gpus++;
    if (one.kind == PciKind::nic) one.is_infiniband = entries[i].pci_class == 0x0207;
    one.parent = parent[i] < 0 ? -1 : moved[static_cast<std::size_t>(parent[i])];
    if (one.parent < 0) one.root = fmt::format("{:04x}:{:02x}", entries[i].domain, entries[i].bus);
    if (one.parent >= 0) one.root = machine.devices[static_cast<std::size_t>(one.parent)].root;
    if (one.numa >= 0) machine.has_numa = true;
    moved[i] = static_cast<int>(machine.devices.size());
    machine.devices.push_back(std::move(one));
  }
  fold_ports(machine.devices);
  out.machines.push_back(std::move(machine));
}

}  // namespace

Result<void> read_lspci(const Source& source, Inventory& out) {
  const Lines lines(source.text());
  std::vector<Entry> entries;
  bool has_numbers = false;
  for (const auto& line : lines.all()) {
    if (line.text.empty()) continue;
    const bool is_head = line.text[0] != ' ' && line.text[0] != '\t';
    if (!is_head) {
      if (!entries.empty()) read_detail(line.text, entries.back());
      continue;
    }
    const auto address = pci_address(line.text.substr(0, line.text.find(' ')));
    if (address.empty()) continue;
    if (entries.size() > 65536)
      return tl::unexpected(Diagnostics{source.error(source.at(line.number), "more than 65536 PCI devices")});
    Entry entry;
    entry.device.address = address;
    entry.device.place = source.at(line.number);
    entry.domain = domain_of(address);
    entry.bus = bus_of(address);
    read_numbers(line.text, entry.device, entry.pci_class);
    if (entry.pci_class == 0) read_bare_numbers(line.text, entry.device, entry.pci_class);
    has_numbers = has_numbers || entry.device.vendor != 0;
    read_words(line.text, entry.device, entry.pci_class);
    if (entry.pci_class == 0) entry.pci_class = class_by_words(line.text);
    entry.device.is_virtual_function = has(line.text, "Virtual Function");
    if (const auto colon = line.text.rfind(": "); colon != std::string_view::npos)
      entry.device.model = line.text.substr(colon + 2);
    entries.push_back(std::move(entry));
  }
  if (entries.empty())
    return tl::unexpected(Diagnostics{source.error(source.at(1), "no line begins with a PCI address",
                                                   "expected the output of `lspci -Dnnvv`, run as root")});
  if (!has_numbers)
    out.unknown.push_back(fmt::format(
        "{}: no vendor and device numbers, devices are told by their names: `lspci -Dnnvv` says more", source.name()));
  make_machine(source, std::move(entries), "lspci", out);
  return {};
}

Result<void> read_lspci_tree(const Source& source, Inventory& out) {
  const Lines lines(source.text());
  std::vector<Entry> entries;
  std::vector<std::pair<std::size_t, int>> column_bus;  // where a bus's children stand, and the bus
  int domain = 0;
  for (const auto& line : lines.all()) {
    const auto text = line.text;
    std::size_t at = 0;
    const auto first = text.find_first_not_of(" |");
    if (first == std::string_view::npos) continue;
    while (!column_bus.empty() && column_bus.back().first > first) column_bus.pop_back();
    int bus = column_bus.empty() ? -1 : column_bus.back().second;
    at = first;
    while (at < text.size()) {
      if (text[at] == '[') {  // [0000:3a] or [3b-3f] or [3b]
        const auto close = text.find(']', at);
        if (close == std::string_view::npos) break;
        auto inside = text.substr(at + 1, close - at - 1);
        if (const auto colon = inside.find(':'); colon != std::string_view::npos) {
          domain =
              static_cast<int>(std::clamp<std::int64_t>(number_of(inside.substr(0, colon), 16).value_or(0), 0, 0xffff));
          inside.remove_prefix(colon + 1);
        }
        const auto ends = split(inside, '-');
        const auto from = number_of(ends[0], 16);
        const auto to = number_of(ends.back(), 16);
        if (!from || !to || *from < 0 || *to > 255 || *to < *from)
          return tl::unexpected(Diagnostics{source.error(source.at(line.number, static_cast<int>(at) + 1),
                                                         fmt::format("'[{}]' is no bus or range of buses", inside))});
        if (!entries.empty() && bus >= 0 && entries.back().secondary < 0 && entries.back().bus == bus) {
          entries.back().secondary = static_cast<int>(*from);
          entries.back().subordinate = static_cast<int>(*to);
          entries.back().pci_class = 0x0604;
        }
        bus = static_cast<int>(*from);
        at = close + 1;
        column_bus.emplace_back(at, bus);
        continue;
      }
      if (at + 4 <= text.size() && text[at + 2] == '.' && number_of(text.substr(at, 2), 16) && bus >= 0) {
        Entry entry;
        entry.device.address = pci_address(fmt::format("{:04x}:{:02x}:{}", domain, bus, text.substr(at, 4)));
        if (entry.device.address.empty()) break;
        entry.device.place = source.at(line.number, static_cast<int>(at) + 1);
        entry.domain = domain;
        entry.bus = bus;
        const auto rest = text.substr(at + 4);
        if (rest.starts_with(" ")) {
          const auto words = trimmed(rest);
          entry.device.model = words;
          if (has(words, "NVIDIA") && !has(words, "NVSwitch") && !has(words, "Audio") && !has(words, "Bridge")) {
            entry.pci_class = 0x0302;
            entry.device.vendor = 0x10de;
          }
          if (has(words, "Mellanox") && has(words, "ConnectX")) {
            entry.pci_class = 0x0207;
            entry.device.vendor = 0x15b3;
          }
        }
        if (entries.size() > 65536)
          return tl::unexpected(Diagnostics{source.error(source.at(line.number), "more than 65536 PCI devices")});
        entries.push_back(std::move(entry));
        at += 4;
        if (rest.starts_with(" ")) break;
        continue;
      }
      ++at;
    }
  }
  if (entries.empty())
    return tl::unexpected(Diagnostics{
        source.error(source.at(1), "no device in this picture of `lspci -tv`", "expected -[0000:00]-+-00.0")});
  out.unknown.push_back(
      fmt::format("{}: a picture of `lspci -tv` has no link speeds and cut names: `lspci -Dnnvv` says "
                  "more",
                  source.name()));
  make_machine(source, std::move(entries), "lspci-tree", out);
  return {};
}

}  // namespace fabricast::import
