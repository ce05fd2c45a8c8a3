// SPDX-License-Identifier: Apache-2.0
#include "config/vm_devices_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/virtualization.hpp"

namespace fabricast::config {

namespace {

constexpr const char* k_virtual_switch = "virtual-switch";

}  // namespace

std::vector<VmDevice> VmDevicesReader::read(const Node& vm, int index) {
  std::vector<VmDevice> out;
  const auto* devices = vm.find("devices");
  if (devices == nullptr) return out;
  for (const auto& entry : devices->entries) {
    const auto before = faults_.size();
    const auto ways = ways_of(entry.value);
    if (index > 0) faults_.resize(before);  // said of the first of equal VMs
    for (const auto& name : names_of(entry, ways.front(), index)) {
      const bool is_twice = std::ranges::any_of(out, [&](const VmDevice& known) { return known.device == name; });
      if (is_twice)
        faults_.push_back(entry.key.error(fmt::format("the VM holds '{}' twice", name), "name each device once"));
      for (std::size_t part = 0; part < ways.size() && !is_twice; ++part) {
        auto one = ways[part];
        one.device = part == 0 ? name : part_of(name, part, entry.key.location());
        if (ways.size() > 1) one.card = name;
        one.location = entry.key.location();
        check_kind(entry, one, index == 0);
        out.push_back(std::move(one));
      }
    }
  }
  return out;
}

/// One way, or one for each profile of a list: several vGPUs or MIG instances of one card.
std::vector<VmDevice> VmDevicesReader::ways_of(const Node& node) {
  auto way = way_of(node);
  const Node* profiles = nullptr;
  for (const auto* key : {"vgpu", "mig"}) {
    const auto* found = node.kind == Node::Kind::mapping ? node.find(key) : nullptr;
    if (found != nullptr && found->kind == Node::Kind::sequence) profiles = found;
  }
  if (profiles == nullptr) return {way};
  std::vector<VmDevice> out;
  for (const auto& one : profiles->items) {
    out.push_back(way);
    out.back().profile = one.scalar;
  }
  if (out.empty()) faults_.push_back(profiles->error("no profile", "write one, or a list of them"));
  return out.empty() ? std::vector{way} : out;
}

/// A further part of a card, in the card's own slot: gpu0-1 of gpu0.
std::string VmDevicesReader::part_of(const std::string& card, std::size_t part, const SourceLocation& where) {
  const auto name = fmt::format("{}-{}", card, part);
  const auto known = std::ranges::find(host_.devices, name, &DeviceSpec::name);
  if (known != host_.devices.end()) return name;
  const auto whole = std::ranges::find(host_.devices, card, &DeviceSpec::name);
  if (whole == host_.devices.end()) return name;
  auto spec = *whole;
  spec.name = name;
  spec.card = card;
  spec.location = where;
  host_.devices.push_back(std::move(spec));
  return name;
}

/// How a device is handed over, whichever it is. A word fits GPUs or adapters; check_kind looks which.
VmDevice VmDevicesReader::way_of(const Node& node) {
  VmDevice out;
  const auto word = [&](const std::string& mode) {
    if (mode == "passthrough") {
      out.gpu = GpuMode::passthrough;
      out.nic = NicMode::passthrough;
    }
    if (mode == "vgpu") out.gpu = GpuMode::vgpu;
    if (mode == "mig") out.gpu = GpuMode::mig;
    for (const auto nic : {NicMode::sr_iov, NicMode::pvrdma, NicMode::vmxnet3, NicMode::virtio})
      if (mode == to_string(nic)) out.nic = nic;
  };
  if (node.kind == Node::Kind::scalar) {
    word(node.scalar);
    return out;
  }
  if (const auto* mode = node.find("mode")) word(mode->scalar);
  if (const auto* profile = node.find("vgpu")) {
    out.gpu = GpuMode::vgpu;
    out.profile = profile->scalar;
  }
  if (const auto* profile = node.find("mig")) {
    out.gpu = GpuMode::mig;
    out.profile = profile->scalar;
  }
  if (const auto* functions = node.find("vf")) {
    out.nic = NicMode::sr_iov;
    out.functions = static_cast<int>(as_integer(*functions));
  }
  if (const auto* remote = node.find("remote")) {
    out.gpu = GpuMode::remote;
    out.remote = remote->scalar;
  }
  if (const auto* share = node.find("share")) out.share = as_quantity(*share, Dimension::number);
  if (const auto* memory = node.find("memory")) {
    check_above_zero(*memory, "memory", Dimension::bytes, faults_);
    out.memory = as_size(*memory);
  }
  if (const auto* limit = node.find("rate_limit")) {
    check_above_zero(*limit, "rate_limit", Dimension::bandwidth, faults_);
    out.rate_limit = Bandwidth{as_quantity(*limit, Dimension::bandwidth)};
  }
  for (const auto* key : {"share", "memory"}) {
    if (const auto* found = node.find(key); found != nullptr && out.remote.empty())
      faults_.push_back(found->error(fmt::format("'{}' of a device that is not remote", key), "remove it"));
  }
  return out;
}

/// The device of that name, or the next devices of that catalogue type: those that fewest VMs hold first.
std::vector<std::string> VmDevicesReader::names_of(const Node::Entry& entry, const VmDevice& way, int index) {
  const auto& key = entry.key.scalar;
  const auto* count = entry.value.kind == Node::Kind::mapping ? entry.value.find("count") : nullptr;
  const bool is_device = std::ranges::any_of(host_.devices, [&](const DeviceSpec& d) { return d.name == key; });
  if (is_device || !way.remote.empty()) {
    if (count != nullptr)
      faults_.push_back(count->error("'count' of a single device", "it goes with a catalogue name as the key"));
    if (!way.remote.empty()) stand_in(entry, DeviceKind::gpu, "");
    return {key};
  }
  std::vector<std::string> same;
  for (const auto& device : host_.devices)
    if (device.type == key) same.push_back(device.name);
  if (same.empty()) return missing(entry, way, index);
  const auto wanted = count == nullptr ? 1 : static_cast<std::size_t>(as_integer(*count));
  if (wanted > same.size()) {
    faults_.push_back(
        entry.key.error(fmt::format("{} x '{}' for one VM, the host has {}", wanted, key, same.size()), "lower count"));
    return {};
  }
  std::stable_sort(same.begin(), same.end(),
                   [&](const std::string& a, const std::string& b) { return holders_[a] < holders_[b]; });
  same.resize(wanted);
  for (const auto& name : same) ++holders_[name];
  return same;
}

std::vector<std::string> VmDevicesReader::missing(const Node::Entry& entry, const VmDevice& way, int index) {
  if (way.nic == NicMode::vmxnet3 || way.nic == NicMode::virtio) {
    stand_in(entry, DeviceKind::hca, k_virtual_switch);
    return {entry.key.scalar};
  }
  if (index > 0) return {};
  std::vector<std::string> names;
  for (const auto& device : host_.devices) {
    names.push_back(device.name);
    if (!device.type.empty()) names.push_back(device.type);
  }
  const auto near = nearest_name(entry.key.scalar, names);
  faults_.push_back(entry.key.error(
      fmt::format("the host has no device '{}', by name or by type", entry.key.scalar),
      !near.empty() ? fmt::format("did you mean '{}'?", near) : "fabricast show prints the devices of a topology"));
  return {};
}

/// A GPU that is elsewhere, or an adapter that ends in the host's own switch.
void VmDevicesReader::stand_in(const Node::Entry& entry, DeviceKind kind, const std::string& type) {
  const auto& name = entry.key.scalar;
  const auto known = std::ranges::find(host_.devices, name, &DeviceSpec::name);
  if (known == host_.devices.end()) {
    DeviceSpec spec;
    spec.name = name;
    spec.kind = kind;
    spec.type = type;
    spec.below = "socket0";
    spec.location = entry.key.location();
    host_.devices.push_back(std::move(spec));
    stand_ins_.insert(name);
  } else if (stand_ins_.count(name) == 0) {
    faults_.push_back(entry.key.error(fmt::format("the host has a device '{}' of its own", name),
                                      "give the remote GPU a name of its own, like remote0"));
  }
}

/// The device is a GPU or an adapter; of a word that fits both, that one is meant.
void VmDevicesReader::check_kind(const Node::Entry& entry, VmDevice& one, bool is_first) {
  const auto device = std::ranges::find(host_.devices, one.device, &DeviceSpec::name);
  if (device == host_.devices.end()) return;
  const bool is_gpu = device->kind == DeviceKind::gpu;
  const bool fits = is_gpu ? one.gpu.has_value() : device->kind == DeviceKind::hca && one.nic.has_value();
  if (is_gpu) {
    one.nic.reset();
  } else {
    one.gpu.reset();
  }
  if (!is_first) return;
  if (!fits)
    faults_.push_back(entry.value.error(
        fmt::format("'{}' is a {}, which cannot be handed over this way", one.device, to_string(device->kind)),
        "GPUs take passthrough, vgpu, mig or remote; adapters passthrough, vf, pvrdma, vmxnet3 or virtio"));
  if (is_gpu && one.rate_limit)
    faults_.push_back(entry.value.error("a rate limit of a GPU", "adapters take one: remove it"));
  const bool is_tcp = one.nic == NicMode::vmxnet3 || one.nic == NicMode::virtio || one.nic == NicMode::sr_iov;
  if (!is_gpu && one.rate_limit && !is_tcp)
    faults_.push_back(
        entry.value.error(fmt::format("a rate limit of a {} adapter", one.nic ? to_string(*one.nic) : "passed-through"),
                          "virtual functions and software adapters take one: remove it"));
}

}  // namespace fabricast::config
