// SPDX-License-Identifier: Apache-2.0
#include "doctor/changes.hpp"

#include <algorithm>
#include <set>

#include "fabricast/virtualization.hpp"

namespace fabricast::doctor {

namespace {

constexpr int k_most_split = 64;

int card_value(const Case& one, const DeviceSpec& device, const char* field, int otherwise) {
  return static_cast<int>(one.parameters.value_or(device.type, field, otherwise));
}

bool is_switch(const Topology& topology, DeviceId id) { return topology.kind(id) == DeviceKind::network_switch; }

/// The settings with a change, in every VM that has settings of its own; null where nothing changes.
std::shared_ptr<const Virtualization> changed(const Virtualization& before,
                                              const std::function<bool(Virtualization&)>& change) {
  auto after = before;
  bool has_changed = change(after);
  for (auto& vm : after.vms) {
    if (auto other = changed(*vm, change)) {
      vm = std::move(other);
      has_changed = true;
    }
  }
  return has_changed ? std::make_shared<const Virtualization>(std::move(after)) : nullptr;
}

}  // namespace

bool change_worn(Case& one, const std::function<bool(Virtualization&)>& change) {
  bool has_changed = false;
  for (auto& group : one.spec.hosts) {
    auto& worn = group.host.virtualization;
    if (auto other = changed(worn ? *worn : Virtualization{}, change)) {
      worn = std::move(other);
      has_changed = true;
    }
  }
  return has_changed;
}

DeviceSpec* nth(HostSpec& host, DeviceKind kind, int number) {
  for (auto& device : host.devices) {
    if (device.kind == kind && number-- == 0) return &device;
  }
  return nullptr;
}

int count(const HostSpec& host, DeviceKind kind) {
  return static_cast<int>(
      std::count_if(host.devices.begin(), host.devices.end(), [&](const DeviceSpec& d) { return d.kind == kind; }));
}

bool is_ethernet(const Case& one, const DeviceSpec& device) {
  const auto type =
      std::find_if(one.types.begin(), one.types.end(), [&](const DeviceType& t) { return t.name == device.type; });
  if (type == one.types.end()) return false;
  const auto protocol = type->attributes.find("protocol");
  return protocol != type->attributes.end() && protocol->second == "ethernet";
}

bool train_narrow(const Case& one, DeviceSpec& device, int width_divisor, int generation) {
  const int card_generation = card_value(one, device, "pcie_generation", 4);
  const int card_width = card_value(one, device, "pcie_width", 16);
  auto& pcie = device.pcie;
  if (pcie.generation == 0 || pcie.generation > card_generation) pcie.generation = card_generation;
  if (pcie.width == 0 || pcie.width > card_width) pcie.width = card_width;
  const auto before = pcie;
  pcie.width = std::max(1, pcie.width / width_divisor);
  if (generation > 0) pcie.generation = std::min(pcie.generation, generation);
  device.in_trained_below_slot = true;
  return pcie.width != before.width || pcie.generation != before.generation;
}

void clone_type(Case& one, DeviceSpec& device, const std::vector<std::pair<std::string, double>>& scales) {
  const auto old = device.type;
  const auto name = old + "-slow";
  for (const auto& type : one.types) {
    if (type.name != old) continue;
    auto copy = type;
    copy.name = name;
    one.types.push_back(std::move(copy));
    break;
  }
  std::vector<Parameter> added;
  for (const auto& [key, parameter] : one.parameters.all()) {
    if (!key.starts_with(old + ".")) continue;
    auto copy = parameter;
    copy.name = name + key.substr(old.size());
    for (const auto& [field, scale] : scales) {
      if (copy.name == name + "." + field) {
        copy.value *= scale;
        copy.low *= scale;
        copy.high *= scale;
      }
    }
    added.push_back(std::move(copy));
  }
  for (auto& parameter : added) one.parameters.set(std::move(parameter));
  device.type = name;
}

bool remove_hca(HostSpec& host, int number) {
  if (count(host, DeviceKind::hca) < 2) return false;
  const auto* gone = nth(host, DeviceKind::hca, number);
  if (gone == nullptr) return false;
  const auto name = gone->name;
  std::erase_if(host.devices, [&](const DeviceSpec& d) { return d.name == name; });
  return true;
}

bool swap_hcas(HostSpec& host, int a, int b) {
  auto* first = nth(host, DeviceKind::hca, a);
  auto* second = nth(host, DeviceKind::hca, b);
  if (first == nullptr || second == nullptr || first == second || first->below == second->below) return false;
  std::swap(first->below, second->below);
  std::swap(first->pcie, second->pcie);
  return true;
}

namespace {

/// The socket that a device hangs below, at any depth; empty when there is none.
std::string socket_of(const HostSpec& host, const DeviceSpec& device) {
  std::string at = device.below;
  for (int steps = 0; steps < 16 && !at.starts_with("socket"); ++steps) {
    const auto up =
        std::find_if(host.devices.begin(), host.devices.end(), [&](const DeviceSpec& d) { return d.name == at; });
    if (up == host.devices.end()) return "";
    at = up->below;
  }
  return at;
}

}  // namespace

bool swap_sockets(HostSpec& host) {
  if (host.num_sockets < 2 || count(host, DeviceKind::hca) == 0) return false;
  const auto wrong = socket_of(host, *nth(host, DeviceKind::hca, 0));
  if (!wrong.starts_with("socket")) return false;
  const std::string other = wrong == "socket0" ? "socket1" : "socket0";
  for (int i = 0; i < count(host, DeviceKind::hca); ++i) {
    auto* hca = nth(host, DeviceKind::hca, i);
    if (socket_of(host, *hca) == wrong) hca->below = other;
  }
  return true;
}

int num_hosts(const TopologySpec& spec) {
  int sum = 0;
  for (const auto& group : spec.hosts) sum += group.count;
  return sum;
}

std::string host_name(const TopologySpec& spec, int host) {
  for (const auto& group : spec.hosts) {
    if (host < group.count) return group.count == 1 ? group.name : group.name + std::to_string(host);
    host -= group.count;
  }
  return "?";
}

bool split_groups(TopologySpec& spec) {
  if (num_hosts(spec) > k_most_split) return false;
  std::vector<HostGroupSpec> out;
  for (const auto& group : spec.hosts) {
    for (int i = 0; i < group.count; ++i) {
      auto one = group;
      one.count = 1;
      if (group.count > 1) one.name = group.name + std::to_string(i);
      out.push_back(std::move(one));
    }
  }
  spec.hosts = std::move(out);
  return true;
}

std::vector<std::string> leaves_with_uplinks(const Topology& topology) {
  std::set<std::string> up, down;
  for (int i = topology.first_network_link(); i < topology.num_links(); ++i) {
    const auto link = topology.link(LinkId{i});
    if (!is_switch(topology, link.from)) continue;
    (is_switch(topology, link.to) ? up : down).insert(topology.device(link.from).name);
  }
  std::vector<std::string> out;
  std::set_intersection(up.begin(), up.end(), down.begin(), down.end(), std::back_inserter(out));
  return out;
}

Topology with_weak_leaf(const Topology& topology, const std::string& leaf) {
  std::vector<LinkId> lost;
  bool is_second = false;
  for (int i = topology.first_network_link(); i < topology.num_links(); ++i) {
    const auto link = topology.link(LinkId{i});
    const bool is_up =
        is_switch(topology, link.from) && is_switch(topology, link.to) && topology.device(link.from).name == leaf;
    if (is_up && is_second) lost.push_back(LinkId{i});
    if (is_up) is_second = !is_second;
  }
  return topology.without_links(lost);
}

}  // namespace fabricast::doctor
