// SPDX-License-Identifier: Apache-2.0
#include "import/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "import/source.hpp"

namespace fabricast::import {

namespace {

/// Who says most of a machine's tree.
int rank_of(const Machine& machine) {
  static const std::map<std::string, int> ranks{{"nccl-topo", 0}, {"hwloc", 1},    {"lspci", 2},
                                                {"govc", 3},      {"smi-topo", 4}, {"lspci-tree", 5}};
  return ranks.at(machine.format);
}

std::string rate_text(const PcieRate& rate) {
  return fmt::format("gen{} x{}", rate.generation == 0 ? "?" : std::to_string(rate.generation),
                     rate.width == 0 ? "?" : std::to_string(rate.width));
}

const PciDevice* find(const Machine& machine, const std::string& address) {
  if (address.empty()) return nullptr;
  for (const auto& one : machine.devices) {
    if (one.address == address) return &one;
  }
  return nullptr;
}

bool is_endpoint(const PciDevice& one) { return one.kind == PciKind::gpu || one.kind == PciKind::nic; }

/// True when both lists share an address, or one of them has no device at all.
bool is_same_host(const Machine& a, const Machine& b) {
  if (!a.name.empty() && !b.name.empty() && a.name != b.name) return false;
  if (a.format == b.format) return false;
  return true;
}

/// What the second source knows and the first does not; differences are findings.
void merge_device(PciDevice& into, const PciDevice& other, Diagnostics& findings) {
  const auto differ = [&](const std::string& what, const std::string& here, const std::string& there) {
    findings.push_back(contradiction(into.place, fmt::format("{} of {} is {} here", what, into.address, here),
                                     other.place, fmt::format("and {} here", there)));
  };
  if (into.device == 0) {
    into.vendor = other.vendor;
    into.device = other.device;
  } else if (other.device != 0 && other.device != into.device) {
    differ("the device number", fmt::format("{:04x}", into.device), fmt::format("{:04x}", other.device));
  }
  if (into.slot.width > 0 && other.slot.width > 0 && into.slot.width > other.slot.width)
    differ("the link", rate_text(into.slot), rate_text(other.slot));
  if (into.slot.generation == 0) into.slot.generation = other.slot.generation;
  if (into.slot.width == 0) into.slot.width = other.slot.width;
  if (into.trained == PcieRate{}) into.trained = other.trained;
  if (into.numa < 0) into.numa = other.numa;
  if (into.numa >= 0 && other.numa >= 0 && into.numa != other.numa)
    differ("the NUMA node", std::to_string(into.numa), std::to_string(other.numa));
  if (!into.has_ats) into.has_ats = other.has_ats;
  if (!into.redirects) into.redirects = other.redirects;
  if (into.ports.empty()) into.ports = other.ports;
  if (into.model.empty()) into.model = other.model;
  if (!into.is_infiniband) into.is_infiniband = other.is_infiniband;
  if (into.nvlinks.empty()) into.nvlinks = other.nvlinks;
}

/// Bridges have other addresses in every source (NCCL keeps the upstream port): redirection is matched by what is
/// below.
void merge_redirects(Machine& into, const Machine& other) {
  for (auto& one : into.devices) {
    if (!is_endpoint(one) || one.parent < 0) continue;
    const auto* twin = find(other, one.address);
    if (twin == nullptr || twin->parent < 0) continue;
    const auto& theirs = other.devices[static_cast<std::size_t>(twin->parent)];
    auto& mine = into.devices[static_cast<std::size_t>(one.parent)];
    if (theirs.redirects) mine.redirects = mine.redirects.value_or(false) || *theirs.redirects;
  }
}

void merge_one(Machine& into, const Machine& other, Inventory& inventory) {
  if (into.name.empty()) into.name = other.name;
  if (into.num_sockets == 0) {
    into.num_sockets = other.num_sockets;
    into.socket_of_numa = other.socket_of_numa;
  }
  if (into.processor.vendor.empty()) into.processor = other.processor;
  if (into.processor.stepping < 0) into.processor.stepping = other.processor.stepping;
  if (into.processor.name.empty()) into.processor.name = other.processor.name;
  if (other.distances) into.distances = other.distances;
  into.highest_numa = std::max(into.highest_numa, other.highest_numa);
  into.has_numa = into.has_numa || other.has_numa;
  int unknown = 0, common = 0;
  const PciDevice* first = nullptr;
  for (auto& one : into.devices) {
    const auto* twin = find(other, one.address);
    if (twin != nullptr) merge_device(one, *twin, inventory.findings);
    if (is_endpoint(one)) (twin == nullptr ? unknown : common) += 1;
    if (twin == nullptr && is_endpoint(one) && !other.devices.empty() && unknown == 1) first = &one;
  }
  if (first != nullptr)
    inventory.findings.push_back(
        contradiction(first->place,
                      fmt::format("device {}{} is not in the other source", first->address,
                                  unknown > 1 ? fmt::format(" (and {} more)", unknown - 1) : ""),
                      other.place, fmt::format("this {} does not list it", other.format)));
  if (common > 0) merge_redirects(into, other);
}

/// 0 below one switch, 1 below one processor, 2 across processors.
int tree_distance(const Machine& machine, int a, int b) {
  const auto at = [&](int i) -> const PciDevice& { return machine.devices[static_cast<std::size_t>(i)]; };
  std::set<int> above;
  for (int i = at(a).parent; i >= 0; i = at(i).parent) above.insert(i);
  for (int i = at(b).parent; i >= 0; i = at(i).parent) {
    if (above.contains(i)) return 0;
  }
  return at(a).numa == at(b).numa ? 1 : 2;
}

int printed_distance(const std::string& cell) {
  if (cell == "PIX" || cell == "PXB" || cell == "PSB") return 0;
  return cell == "PHB" || cell == "NODE" ? 1 : cell == "SYS" ? 2 : -1;
}

/// Index of the device that a row of the matrix stands for; -1.
int device_of(const Machine& machine, const DistanceMatrix& matrix, const std::string& name) {
  const auto alias = matrix.nic_names.find(name);
  const auto& port_name = alias == matrix.nic_names.end() ? name : alias->second;
  for (std::size_t i = 0; i < machine.devices.size(); ++i) {
    const auto& one = machine.devices[i];
    if (one.kind == PciKind::gpu && name == fmt::format("GPU{}", one.gpu)) return static_cast<int>(i);
    for (const auto& port : one.ports) {
      if (one.kind == PciKind::nic && port.name == port_name) return static_cast<int>(i);
    }
  }
  return -1;
}

int nvlinks_between(const Machine& machine, int a, int b) {
  const auto& one = machine.devices[static_cast<std::size_t>(a)];
  const auto& other = machine.devices[static_cast<std::size_t>(b)];
  int direct = 0, switched = 0;
  for (const auto& link : one.nvlinks) {
    if (link.to_switch) switched += link.count;
    if (!link.to_switch && link.target == other.address) direct += link.count;
  }
  return direct > 0 ? direct : switched;
}

void check_pair(const Machine& machine, const DistanceMatrix& matrix, std::size_t row, std::size_t column, int a, int b,
                Diagnostics& findings) {
  static const char* const words[] = {"below one PCIe switch", "below one processor", "on two processors"};
  const auto& cell = matrix.cells[row][column];
  const auto& place = machine.devices[static_cast<std::size_t>(a)].place;
  if (cell.starts_with("NV") && a != b) {
    const auto printed = number_of(std::string_view(cell).substr(2), 10).value_or(0);
    const int found = nvlinks_between(machine, a, b);
    if (found != printed)
      findings.push_back(
          contradiction(matrix.rows[row],
                        fmt::format("{} and {} have {} NVLinks here", matrix.names[row], matrix.names[column], printed),
                        place, fmt::format("and {} here", found)));
    return;
  }
  const int printed = printed_distance(cell);
  if (printed < 0) return;
  int found = tree_distance(machine, a, b);
  if (found == 2 && !machine.has_numa) found = 1;
  if (printed != found)
    findings.push_back(contradiction(
        matrix.rows[row],
        fmt::format("{} and {} are {} here ({})", matrix.names[row], matrix.names[column], words[printed], cell), place,
        fmt::format("and {} here", words[found])));
}

void check_distances(Machine& machine, Inventory& inventory) {
  constexpr std::size_t k_most_shown = 8;
  const auto& matrix = *machine.distances;
  Diagnostics found;
  std::vector<int> devices;
  for (const auto& name : matrix.names) devices.push_back(device_of(machine, matrix, name));
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    if (devices[i] < 0) {
      found.push_back(contradiction(matrix.rows[i], fmt::format("{} is in this matrix only", matrix.names[i]),
                                    machine.place, "this source does not list it"));
      continue;
    }
    auto& one = machine.devices[static_cast<std::size_t>(devices[i])];
    if (matrix.numa[i] >= 0 && one.numa < 0) {
      one.numa = matrix.numa[i];
      machine.has_numa = true;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (devices[j] >= 0) check_pair(machine, matrix, i, j, devices[i], devices[j], found);
    }
  }
  int missing = 0;
  const PciDevice* first = nullptr;
  for (std::size_t i = 0; i < machine.devices.size(); ++i) {
    const auto& one = machine.devices[i];
    if (one.kind != PciKind::gpu || std::ranges::count(devices, static_cast<int>(i)) > 0) continue;
    if (first == nullptr) first = &one;
    ++missing;
  }
  const auto gpus = std::ranges::count(machine.devices, PciKind::gpu, &PciDevice::kind);
  if (first != nullptr && !matrix.rows.empty())
    found.insert(found.begin(), contradiction(matrix.rows.front(),
                                              fmt::format("this matrix lists {} of {} GPUs", gpus - missing, gpus),
                                              first->place, "this one is not in it"));
  const auto hidden = found.size() > k_most_shown ? found.size() - k_most_shown : 0;
  if (hidden > 0) {
    found.resize(k_most_shown);
    found.back().notes.push_back({fmt::format("{} further contradictions of this matrix are not shown", hidden), {}});
  }
  inventory.findings.insert(inventory.findings.end(), found.begin(), found.end());
}

}  // namespace

Diagnostic contradiction(SourceLocation where, std::string message, SourceLocation other, std::string there) {
  auto found = make_warning_at(where, std::move(message));
  found.notes.push_back({std::move(there), std::move(other)});
  return found;
}

std::string clean_name(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (is_plain) out += c;
    if (!is_plain && !out.empty() && out.back() != '-') out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.size() > 60 ? out.substr(0, 60) : out;
}

void merge_machines(Inventory& inventory) {
  std::stable_sort(inventory.machines.begin(), inventory.machines.end(),
                   [](const Machine& a, const Machine& b) { return rank_of(a) < rank_of(b); });
  std::vector<Machine> kept;
  for (auto& machine : inventory.machines) {
    Machine* twin = nullptr;
    for (auto& one : kept) {
      if (is_same_host(one, machine)) twin = &one;
    }
    if (twin != nullptr) {
      merge_one(*twin, machine, inventory);
    } else {
      kept.push_back(std::move(machine));
    }
  }
  inventory.machines = std::move(kept);
  for (auto& machine : inventory.machines) {
    if (machine.distances && !machine.devices.empty()) check_distances(machine, inventory);
  }
}

namespace {

/// "node018 HCA-1" -> node018 and HCA-1; a description that is the vendor's default names no host.
std::pair<std::string, std::string> host_and_port(const std::string& description) {
  const auto words = words_of(description);
  const bool is_part = !words.empty() && words[0].starts_with("MT") && words[0].find_first_of("0123456789") == 2;
  if (words.empty() || is_part || has(description, "Mellanox Technologies")) return {"", ""};
  auto host = words[0].substr(0, words[0].find('.'));
  if (host.starts_with("'")) host.remove_prefix(1);
  return {clean_name(host), words.size() > 1 ? std::string(words[1]) : ""};
}

}  // namespace

std::vector<FabricHost> hosts_of(const FabricSeen& fabric, Inventory& inventory) {
  std::vector<FabricHost> out;
  std::map<std::string, std::size_t> index;
  int unnamed = 0;
  std::vector<std::vector<std::string>> ports;
  for (std::size_t i = 0; i < fabric.nodes.size(); ++i) {
    const auto& node = fabric.nodes[i];
    if (node.is_switch || node.is_aggregation || node.ports.empty()) continue;
    auto [host, port] = host_and_port(node.description);
    if (host.empty()) host = fmt::format("host{}", unnamed++);
    const auto [it, is_new] = index.try_emplace(host, out.size());
    if (is_new) {
      out.push_back({host, {}});
      ports.emplace_back();
    }
    out[it->second].nodes.push_back(static_cast<int>(i));
    ports[it->second].push_back(port);
  }
  if (unnamed > 0)
    inventory.assumed.push_back(
        fmt::format("{} adapters of the fabric name no host: each is a host of its own", unnamed));
  for (std::size_t h = 0; h < out.size(); ++h) {
    std::vector<std::size_t> turn(out[h].nodes.size());
    std::iota(turn.begin(), turn.end(), std::size_t{0});
    // mlx5_2 before mlx5_10
    std::stable_sort(turn.begin(), turn.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(ports[h][a].size(), ports[h][a]) < std::pair(ports[h][b].size(), ports[h][b]);
    });
    std::vector<int> nodes;
    for (const auto t : turn) nodes.push_back(out[h].nodes[t]);
    out[h].nodes = std::move(nodes);
  }
  return out;
}

void check_placement(const PlacementSeen& placement, const FabricSeen& fabric, const std::vector<FabricHost>& hosts,
                     Inventory& inventory) {
  constexpr int k_most_shown = 8;
  std::map<std::string, const FabricHost*> by_name;
  for (const auto& host : hosts) by_name[host.name] = &host;
  std::map<std::string, const FabricNode*> nodes;
  for (const auto& node : fabric.nodes) nodes[node.id] = &node;
  int shown = 0;
  const auto add = [&](Diagnostic found) {
    if (++shown <= k_most_shown) inventory.findings.push_back(std::move(found));
  };
  std::map<std::string, const PlacementSwitch*> placed;
  for (const auto& leaf : placement.switches) {
    std::map<std::string, std::pair<int, const FabricPort*>> votes;  // physical leaf -> hosts of this leaf there
    for (const auto& name : leaf.hosts) {
      placed[clean_name(name)] = &leaf;
      const auto host = by_name.find(clean_name(name));
      if (host == by_name.end()) {
        add(contradiction(leaf.place, fmt::format("'{}' has a place here", name), fabric.place,
                          "the fabric shows no such host"));
        continue;
      }
      const auto& port = fabric.nodes[static_cast<std::size_t>(host->second->nodes.front())].ports.begin()->second;
      auto& vote = votes[port.peer];
      ++vote.first;
      vote.second = &port;
    }
    if (votes.size() > 1 && !placement.is_block) {
      const auto minor = std::min_element(votes.begin(), votes.end(),
                                          [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
      const auto peer = nodes.find(minor->first);
      add(contradiction(leaf.place,
                        fmt::format("hosts of '{}' hang below {} switches of the fabric", leaf.name, votes.size()),
                        minor->second.second->place,
                        fmt::format("{} of them below '{}'", minor->second.first,
                                    peer == nodes.end() ? minor->first : peer->second->description)));
    }
  }
  for (const auto& host : hosts) {
    if (!placed.contains(host.name))
      add(contradiction(fabric.nodes[static_cast<std::size_t>(host.nodes.front())].place,
                        fmt::format("'{}' is in the fabric", host.name), placement.place,
                        "the scheduler gives it no place"));
  }
  if (shown > k_most_shown && !inventory.findings.empty())
    inventory.findings.back().notes.push_back(
        {fmt::format("{} further contradictions are not shown", shown - k_most_shown), {}});
}

void check_guests(Inventory& inventory) {
  if (inventory.machines.empty()) return;
  const auto& machine = inventory.machines.front();
  std::map<std::string, const HandedDevice*> owners;
  for (const auto& vm : inventory.vms) {
    for (const auto& one : vm.devices) {
      if (one.host_address.empty()) continue;
      const auto [it, is_first] = owners.try_emplace(one.host_address, &one);
      if (!is_first)
        inventory.findings.push_back(contradiction(one.place,
                                                   fmt::format("{} is handed to '{}' here", one.host_address, vm.name),
                                                   it->second->place, "and to another machine here"));
      const bool is_function = one.mode == "sr-iov";
      if (find(machine, one.host_address) == nullptr && !is_function && !machine.hides_tree)
        inventory.findings.push_back(contradiction(one.place, fmt::format("'{}' gets {}", vm.name, one.host_address),
                                                   machine.place, "the host lists no such GPU or adapter"));
    }
  }
}

}  // namespace fabricast::import
