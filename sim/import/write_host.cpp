// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/text.hpp"
#include "import/identity.hpp"
#include "import/source.hpp"
#include "import/write_topology.hpp"

namespace fabricast::import {

namespace {

/// Sockets of a topology, NUMA nodes of a Linux kernel (CONFIG_NODES_SHIFT 10).
constexpr int k_most_sockets = 64, k_most_nodes = 1024;

/// Text behind a '#': one line without control characters.
std::string comment(std::string_view text) {
  auto out = printable(text);
  return out.size() > 400 ? out.substr(0, 397) + "..." : out;
}

class HostWriter {
 public:
  HostWriter(const Machine& machine, Inventory& inventory, const ImportOptions& options)
      : machine_(machine), inventory_(inventory), options_(options) {}

  Result<WrittenHost> write() {
    find_used();
    choose_processor();
    if (auto placed = place_sockets(); !placed) return tl::unexpected(placed.error());
    name_devices();
    out_.yaml = fmt::format("      processor: {}\n      sockets: {}\n", processor_, num_sockets_);
    if (redirects(machine_).value_or(false))
      out_.yaml += "      acs: redirect  # ACSCtl of a downstream port: ReqRedir+\n";
    out_.yaml += "      devices:\n";
    write_root_complexes();
    for (std::size_t i = 0; i < machine_.devices.size(); ++i) {
      if (is_switch(i)) write_switch(i);
    }
    for (const auto i : ordered(PciKind::gpu)) {
      if (auto done = write_gpu(i); !done) return tl::unexpected(done.error());
    }
    for (const auto i : ordered(PciKind::nic)) write_hca(i);
    write_nvlinks();
    if (num_written_ == 0) {  // a host without devices is written without the keys that hold them
      const auto at = out_.yaml.find("      devices:\n");
      out_.yaml.erase(at);
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] const PciDevice& at(std::size_t i) const { return machine_.devices[i]; }
  [[nodiscard]] bool is_switch(std::size_t i) const { return at(i).kind == PciKind::bridge && used_[i]; }

  /// Switches with at least two things below count; one with a single thing is a port on the way.
  void find_used() {
    const auto n = machine_.devices.size();
    std::vector<int> below(n, 0);
    used_.assign(n, false);
    above_.assign(n, -1);
    for (std::size_t i = n; i-- > 0;) {
      const bool is_leaf = at(i).kind == PciKind::gpu || at(i).kind == PciKind::nic;
      if (!is_leaf && below[i] == 0) continue;
      if (at(i).parent >= 0) ++below[static_cast<std::size_t>(at(i).parent)];
    }
    int folded = 0;
    for (std::size_t i = 0; i < n; ++i) {
      int up = at(i).parent;
      while (up >= 0 && !used_[static_cast<std::size_t>(up)]) up = at(static_cast<std::size_t>(up)).parent;
      above_[i] = up;
      if (at(i).kind != PciKind::bridge || below[i] == 0) continue;
      used_[i] = below[i] >= 2 || at(i).redirects.value_or(false);
      folded += used_[i] ? 0 : 1;
    }
    if (folded > 0)
      inventory_.assumed.push_back(
          fmt::format("{} PCIe bridges with one device below are ports of a switch or of the "
                      "processor, no switches",
                      folded));
  }

  [[nodiscard]] bool has_superchips() const { return std::ranges::any_of(machine_.devices, &PciDevice::has_c2c); }

  void choose_processor() {
    auto found = processor_identity(machine_.processor);
    if (!options_.processor.empty()) found = {options_.processor, "", {}};
    if (found.name.empty()) {
      int generation = 3;
      for (const auto& one : machine_.devices) {
        if (one.kind == PciKind::gpu || one.kind == PciKind::nic)
          generation = std::max(
              {generation, one.slot.generation, gpu_identity(one).card.generation, hca_identity(one).card.generation});
      }
      found = has_superchips() ? Identity{"grace", "GPUs on NVLink-C2C hang on a Grace", {}}
                               : usual_processor(generation, machine_.processor.vendor);
      if (!machine_.processor.vendor.empty())
        found.assumed =
            fmt::format("processor {} family {} model {} '{}' is not in the catalogue: {}", machine_.processor.vendor,
                        machine_.processor.family, machine_.processor.model, machine_.processor.name, found.name);
    }
    if (machine_.hides_tree && found.name == "xeon-emeraldrapids") found.name = "xeon-emeraldrapids-vm";
    if (!found.assumed.empty()) inventory_.assumed.push_back(found.assumed);
    processor_ = found.name;
  }

  Result<void> place_sockets() {
    int highest = std::max(0, machine_.highest_numa);
    for (const auto& one : machine_.devices) highest = std::max(highest, one.numa);
    if (highest >= k_most_nodes)
      return tl::unexpected(Diagnostics{
          make_error(fmt::format("NUMA node {} is named, Linux numbers 0 to {}", highest, k_most_nodes - 1))});
    num_sockets_ = machine_.num_sockets;
    const auto gpus = ordered(PciKind::gpu);
    if (num_sockets_ == 0 && machine_.hides_tree) {
      num_sockets_ = gpus.size() > 4 ? 2 : 1;
      if (num_sockets_ == 2)
        inventory_.assumed.push_back(
            "the guest hides NUMA nodes and buses: the first half of the GPUs is below one processor, "
            "the other below a second, as on boards of eight");
    } else if (num_sockets_ == 0) {
      num_sockets_ = highest + 1;
      if (highest > 1 && !has_superchips()) {
        num_sockets_ = 2;
        inventory_.assumed.push_back(
            fmt::format("{} NUMA nodes are two processors with several nodes each", highest + 1));
      }
      if (highest == 0 && !machine_.has_numa) inventory_.unknown.push_back("the number of processors (one is written)");
    }
    if (num_sockets_ < 1 || num_sockets_ > k_most_sockets)
      return tl::unexpected(Diagnostics{make_error_at(
          machine_.place,
          fmt::format("the host has {} processors, 1 to {} can be described", num_sockets_, k_most_sockets),
          "describe one board of it by hand")});
    nodes_ = std::max(highest + 1, num_sockets_);
    return {};
  }

  [[nodiscard]] int socket_of(std::size_t i) const {
    if (machine_.hides_tree && num_sockets_ == 2 && at(i).kind == PciKind::gpu) {
      const auto gpus = ordered(PciKind::gpu);
      const auto place = std::find(gpus.begin(), gpus.end(), i) - gpus.begin();
      return static_cast<std::size_t>(place) * 2 >= gpus.size() ? 1 : 0;
    }
    const int numa = at(i).numa;
    if (numa < 0) return 0;
    const auto known = machine_.socket_of_numa.find(numa);
    if (known != machine_.socket_of_numa.end()) return std::clamp(known->second, 0, num_sockets_ - 1);
    return std::clamp(numa * num_sockets_ / nodes_, 0, num_sockets_ - 1);
  }

  /// In the order that software numbers them.
  [[nodiscard]] std::vector<std::size_t> ordered(PciKind kind) const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < machine_.devices.size(); ++i) {
      if (at(i).kind == kind) out.push_back(i);
    }
    const auto number = [&](std::size_t i) {
      if (kind == PciKind::gpu) return at(i).gpu < 0 ? 1 << 20 : at(i).gpu;
      return at(i).ports.empty() || at(i).ports.front().number < 0 ? 1 << 20 : at(i).ports.front().number;
    };
    std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) { return number(a) < number(b); });
    return out;
  }

  void name_devices() {
    names_.assign(machine_.devices.size(), "");
    int switches = 0, gpus = 0, hcas = 0;
    for (std::size_t i = 0; i < machine_.devices.size(); ++i) {
      if (is_switch(i)) names_[i] = fmt::format("sw{}", switches++);
    }
    for (const auto i : ordered(PciKind::gpu)) {
      if (!is_left_out(i)) names_[i] = fmt::format("gpu{}", gpus++);
    }
    for (const auto i : ordered(PciKind::nic)) {
      if (!hca_identity(at(i)).name.empty()) names_[i] = fmt::format("hca{}", hcas++);
    }
  }

  /// A card that a list of PCI devices names and the catalogue does not know: a display, or a GPU that nothing stands
  /// for. NCCL's dumps and nvidia-smi list what computes: there it must be known.
  [[nodiscard]] bool is_left_out(std::size_t i) const {
    const bool is_list = machine_.format != "nccl-topo" && at(i).vendor != 0;
    return is_list && options_.gpu.empty() && gpu_identity(at(i)).name.empty();
  }

  Result<void> leave_out_gpu(std::size_t i) {
    const auto what = fmt::format("GPU {} [{:04x}:{:04x}] {}is not in the catalogue: left out", at(i).address,
                                  at(i).vendor, at(i).device, at(i).model.empty() ? "" : at(i).model + " ");
    inventory_.unknown.push_back(fmt::format("{}:{}: {}", at(i).place.file, at(i).place.line, what));
    inventory_.findings.push_back(make_warning_at(
        at(i).place, what, "name a type that stands for it: --gpu TYPE (`fabricast list devices` names all)"));
    return {};
  }

  /// Host bridges with several devices of interest, and both halves of a hidden board.
  void write_root_complexes() {
    std::map<std::string, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < machine_.devices.size(); ++i) {
      const bool is_top = above_[i] < 0 && !names_[i].empty();
      if (is_top && !at(i).root.empty()) groups[fmt::format("{}/{}", socket_of(i), at(i).root)].push_back(i);
      if (is_top && machine_.hides_tree && at(i).kind == PciKind::gpu)
        groups[fmt::format("{}", socket_of(i))].push_back(i);
    }
    int number = 0;
    for (const auto& [key, members] : groups) {
      if (members.size() < 2) continue;
      const auto name = fmt::format("rc{}", number++);
      for (const auto i : members) roots_[i] = name;
      out_.yaml += fmt::format("        - {{name: {}, kind: root_complex, below: socket{}}}\n", name,
                               socket_of(members.front()));
    }
  }

  [[nodiscard]] std::string below(std::size_t i) const {
    if (above_[i] >= 0) return names_[static_cast<std::size_t>(above_[i])];
    const auto root = roots_.find(i);
    return root != roots_.end() ? root->second : fmt::format("socket{}", socket_of(i));
  }

  static bool is_possible(const PcieRate& rate) {
    return rate.generation >= 1 && rate.generation <= 6 &&
           (rate.width == 1 || rate.width == 2 || rate.width == 4 || rate.width == 8 || rate.width == 16);
  }

  void write_switch(std::size_t i) {
    auto rate = at(i).slot;
    if (rate.generation == 0) rate.generation = at(i).trained.generation;
    if (rate.width == 0) rate.width = at(i).trained.width;
    std::string slot;
    if (is_possible(rate)) {
      slot = fmt::format(", pcie: gen{} x{}", rate.generation, rate.width);
    } else {
      int generation = 3;
      for (std::size_t j = i + 1; j < machine_.devices.size(); ++j) {
        if (above_[j] == static_cast<int>(i))
          generation = std::max({generation, gpu_identity(at(j)).card.generation, hca_identity(at(j)).card.generation});
      }
      slot = fmt::format(", pcie: gen{} x16", generation);
      inventory_.assumed.push_back(fmt::format("the link of PCIe switch {} is not said: as fast as the devices below",
                                               at(i).address.empty() ? names_[i] : at(i).address));
    }
    add_line(i, fmt::format("kind: pcie_switch, below: {}{}", below(i), slot));
  }

  /// `pcie:` of a card, with `trained:` where the link came up with less than it could.
  std::string link_of(std::size_t i, const PcieRate& card) {
    if (at(i).has_c2c || card.width > 16) return "";  // what a source says of PCIe is not how a superchip hangs
    PcieRate can{at(i).slot.generation == 0 ? 0 : std::min(at(i).slot.generation, card.generation),
                 at(i).slot.width == 0 ? 0 : std::min(at(i).slot.width, card.width)};
    PcieRate has{std::min(at(i).trained.generation, card.generation), std::min(at(i).trained.width, card.width)};
    const bool is_idle =
        at(i).kind == PciKind::gpu && has.generation > 0 && has.generation < card.generation && has.generation <= 2;
    if (is_idle) {
      note_once(idle_, fmt::format(
                           "GPU links seen at PCIe {} are idle ones: taken as fast as the card (look again under load)",
                           has.generation));
      has.generation = can.generation > 0 ? can.generation : card.generation;
    }
    if (!is_possible(can) && is_possible(has)) can = has;
    if (can.generation == 0) can.generation = card.generation;
    if (can.width == 0) can.width = card.width;
    if (at(i).slot == PcieRate{} && at(i).trained == PcieRate{})
      note_once(unsaid_, "links of cards whose speed no source gives: as fast as the card");
    if (!is_possible(can)) return "";
    std::string text = fmt::format(", pcie: gen{} x{}", can.generation, can.width);
    if (is_possible(has) && (has.generation < can.generation || has.width < can.width)) {
      const PcieRate low{std::min(has.generation, can.generation), std::min(has.width, can.width)};
      text += fmt::format(", trained: gen{} x{}", low.generation, low.width);
      inventory_.findings.push_back(
          make_warning_at(at(i).place,
                          fmt::format("{} ({}) trained at gen{} x{}, it can do gen{} x{}", at(i).address, names_[i],
                                      low.generation, low.width, can.generation, can.width),
                          "reseat the card or its riser, and look at the slot's width in the BIOS"));
    }
    return text;
  }

  void note_once(bool& is_said, std::string text) {
    if (!std::exchange(is_said, true)) inventory_.assumed.push_back(std::move(text));
  }

  Result<void> write_gpu(std::size_t i) {
    if (is_left_out(i)) return leave_out_gpu(i);
    auto found = gpu_identity(at(i));
    if (found.name.empty() && !options_.gpu.empty()) found = {options_.gpu, "", {6, 16}};
    if (found.name.empty()) {
      return tl::unexpected(Diagnostics{
          make_error_at(at(i).place,
                        fmt::format("GPU {} [{:04x}:{:04x}] {} is not in the catalogue", at(i).address, at(i).vendor,
                                    at(i).device, at(i).model),
                        "name a type that stands for it: --gpu TYPE (`fabricast list devices` names all)")});
    }
    if (!found.assumed.empty() && assumed_.insert(found.assumed).second) inventory_.assumed.push_back(found.assumed);
    types_[i] = found.name;
    const bool is_given = !options_.gpu.empty() && found.name == options_.gpu && found.card.generation == 6;
    const auto link = is_given && at(i).slot == PcieRate{} && at(i).trained == PcieRate{} ? "" : link_of(i, found.card);
    add_line(i, fmt::format("type: {}, below: {}{}", found.name, below(i), link));
    ++out_.num_gpus;
    return {};
  }

  void write_hca(std::size_t i) {
    const auto found = hca_identity(at(i));
    std::string ports;
    double rate = 0;
    for (const auto& port : at(i).ports) {
      ports += (ports.empty() ? "" : ", ") + port.name;
      rate = std::max(rate, port.gbit_per_s);
    }
    if (found.name.empty()) {
      inventory_.unknown.push_back(fmt::format("{}:{}: adapter {} [{:04x}:{:04x}] {} is not in the catalogue: left out",
                                               at(i).place.file, at(i).place.line, at(i).address, at(i).vendor,
                                               at(i).device, ports));
      return;
    }
    if (!found.assumed.empty() && assumed_.insert(found.assumed).second) inventory_.assumed.push_back(found.assumed);
    add_line(i, fmt::format("type: {}, below: {}{}", found.name, below(i), link_of(i, found.card)), ports);
    out_.hcas.push_back(names_[i]);
    out_.rates.push_back(rate);
    out_.is_infiniband = at(i).is_infiniband.value_or(true);
  }

  void add_line(std::size_t i, const std::string& keys, const std::string& note = {}) {
    const auto words = at(i).address + (note.empty() || at(i).address.empty() ? "" : ", ") + note;
    out_.yaml +=
        fmt::format("        - {{name: {}, {}}}{}\n", names_[i], keys, words.empty() ? "" : "  # " + comment(words));
    ++num_written_;
  }

  void write_nvlinks() {
    int capability = 0;
    std::string gpu, lines;
    bool has_switch = false;
    std::map<std::string, std::size_t> by_address;
    for (const auto i : ordered(PciKind::gpu)) {
      if (!names_[i].empty()) by_address[at(i).address] = i;
    }
    std::set<std::pair<std::size_t, std::size_t>> done;
    for (const auto i : ordered(PciKind::gpu)) {
      if (names_[i].empty()) continue;
      int switched = 0;
      for (const auto& link : at(i).nvlinks) {
        const auto other = by_address.find(link.target);
        if (link.to_switch) {
          switched += link.count;
        } else if (other == by_address.end()) {
          inventory_.unknown.push_back(
              fmt::format("{}: NVLinks to '{}', which the source does not list: left out", names_[i], link.target));
        } else if (done.insert(std::minmax(i, other->second)).second) {
          lines +=
              fmt::format("        - {{from: {}, to: {}, links: {}}}\n", names_[i], names_[other->second], link.count);
        }
      }
      if (switched == 0) continue;
      has_switch = true;
      capability = std::max(capability, at(i).compute_capability);
      gpu = types_[i];
      lines += fmt::format("        - {{from: {}, to: nvswitch0, links: {}}}\n", names_[i], std::min(switched, 36));
    }
    if (has_switch) {
      out_.yaml +=
          fmt::format("        - {{name: nvswitch0, type: {}}}  # one plane stands for all switch chips of the board\n",
                      nvswitch_identity(gpu, capability).name);
    }
    if (!lines.empty()) out_.yaml += "      nvlinks:\n" + lines;
  }

  const Machine& machine_;
  Inventory& inventory_;
  const ImportOptions& options_;
  WrittenHost out_;
  std::string processor_;
  int num_sockets_ = 1;
  int nodes_ = 1;
  int num_written_ = 0;
  std::vector<bool> used_;
  std::vector<int> above_;  ///< the switch above that is kept; -1
  std::vector<std::string> names_;
  std::map<std::size_t, std::string> roots_, types_;
  std::set<std::string> assumed_;
  bool idle_ = false, unsaid_ = false;
};

}  // namespace

Result<WrittenHost> write_host(const Machine& machine, Inventory& inventory, const ImportOptions& options) {
  return HostWriter(machine, inventory, options).write();
}

}  // namespace fabricast::import
