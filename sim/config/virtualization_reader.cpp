// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "config/names.hpp"
#include "config/virtualization.hpp"

namespace fabricast::config {

namespace {

template <typename Value>
Value from_choice(const Node& node, std::initializer_list<Value> values) {
  for (const auto value : values) {
    if (to_string(value) == node.scalar) return value;
  }
  return *values.begin();
}

class VirtualizationReader {
 public:
  VirtualizationReader(const Node& node, const HostSpec& host, Diagnostics& faults)
      : node_(node), host_(host), faults_(faults) {}

  Virtualization read() {
    if (node_.kind == Node::Kind::scalar) {
      guest_ = virtualization_of(*virtual_mode_from(node_.scalar), Hypervisor::esxi);
      guest_.location = node_.location();
      keep_acs_of_host();
      return std::move(guest_);
    }
    if (node_.find("mode") == nullptr) {
      faults_.push_back(node_.error("the virtualization has no 'mode'",
                                    "add `mode: passthrough` or another word, or list `vms:` beside it"));
      return {};
    }
    const auto mode = *virtual_mode_from(node_.find("mode")->scalar);
    auto hypervisor = Hypervisor::esxi;
    if (const auto* name = node_.find("hypervisor"))
      hypervisor = from_choice(*name, {Hypervisor::esxi, Hypervisor::kvm, Hypervisor::cloud_hypervisor, Hypervisor::xen,
                                       Hypervisor::hyper_v});
    guest_ = virtualization_of(mode, hypervisor);
    guest_.location = node_.location();
    for (const auto& entry : node_.entries) guest_.locations[entry.key.scalar] = entry.key.location();
    for (const auto& entry : node_.entries) {
      const auto& key = entry.key.scalar;
      if (!guest_.is_virtual() && key != "mode" && key != "acs")
        faults_.push_back(
            entry.key.error(fmt::format("bare metal has no '{}'", key), "beside `mode` it takes only `acs`"));
    }
    keep_acs_of_host();
    read_system();
    read_devices();
    read_pcie();
    read_gpu_sharing();
    return std::move(guest_);
  }

 private:
  /// What the switches of the bare host do, until the settings say otherwise.
  void keep_acs_of_host() {
    if (!guest_.is_virtual() && host_.virtualization) guest_.acs = host_.virtualization->acs;
  }
  void flag(const char* key, bool& into) {
    if (const auto* found = node_.find(key)) into = as_flag(*found);
  }
  void integer(const char* key, int& into) {
    if (const auto* found = node_.find(key)) into = static_cast<int>(as_integer(*found));
  }
  void size(const char* key, std::optional<Bytes>& into) {
    const auto* found = node_.find(key);
    if (found == nullptr) return;
    check_above_zero(*found, key, Dimension::bytes, faults_);
    into = as_size(*found);
  }
  void release(const char* key, const char* example, ReleaseNumber& into) {
    const auto* found = node_.find(key);
    if (found == nullptr) return;
    const auto parsed = release_from(found->scalar);
    if (parsed) {
      into = *parsed;
    } else {
      faults_.push_back(found->error(fmt::format("'{}' must be a release, found '{}'", key, found->scalar),
                                     fmt::format("write e.g. {} in quotes", example)));
    }
  }

  void read_system() {
    if (guest_.hypervisor == Hypervisor::esxi) release("version", "\"6.7 U1\"", guest_.version);
    integer("vms_per_host", guest_.vms_per_host);
    if (const auto* vcpus = node_.find("vcpus")) guest_.vcpus = static_cast<int>(as_integer(*vcpus));
    flag("pinning", guest_.is_pinned);
    if (const auto* numa = node_.find("numa"); numa != nullptr && (numa->scalar == "on" || numa->scalar == "off" ||
                                                                   numa->scalar == "true" || numa->scalar == "false"))
      guest_.is_numa_aligned = as_flag(*numa);
    size("memory", guest_.memory);
    if (const auto* reserved = node_.find("memory_reservation"))
      guest_.reserved_share = reserved->scalar == "full" ? 1 : (reserved->scalar == "none" ? 0 : 0.5);
    flag("huge_pages", guest_.has_huge_pages);
    if (const auto* level = node_.find("latency_sensitivity"))
      guest_.latency_sensitivity = from_choice(*level, {LatencySensitivity::normal, LatencySensitivity::high});
    flag("efi", guest_.has_efi);
    flag("container", guest_.is_container);
    flag("vhost", guest_.has_vhost);
    if (const auto* name = node_.find("distributed_switch")) guest_.switch_name = name->scalar;
    if (const auto* needs = node_.find("needs")) {
      for (const auto& one : needs->items) guest_.needs.push_back(one.scalar);
    }
  }

  void read_devices() {
    if (const auto* gpu = node_.find("gpu"))
      guest_.gpu = from_choice(*gpu, {GpuMode::passthrough, GpuMode::vgpu, GpuMode::mig, GpuMode::remote});
    if (const auto* nic = node_.find("nic")) guest_.nic = nic_mode(*nic);
    if (const auto* devices = node_.find("devices")) {
      for (const auto& one : devices->items) read_device(*one.find("name"), *one.find("mode"));
    }
    if (const auto* limit = node_.find("rate_limit")) {
      check_above_zero(*limit, "rate_limit", Dimension::bandwidth, faults_);
      guest_.rate_limit = Bandwidth{as_quantity(*limit, Dimension::bandwidth)};
    }
    if (const auto* mtu = node_.find("mtu")) guest_.mtu = read_mtu(*mtu, faults_).value_or(guest_.mtu);
  }

  static NicMode nic_mode(const Node& node) {
    return from_choice(node,
                       {NicMode::passthrough, NicMode::sr_iov, NicMode::pvrdma, NicMode::vmxnet3, NicMode::virtio});
  }

  void read_device(const Node& name, const Node& mode) {
    if (guest_.gpu_by_name.contains(name.scalar) || guest_.nic_by_name.contains(name.scalar)) {
      faults_.push_back(name.error(fmt::format("device '{}' has a mode already", name.scalar), "give it one mode"));
      return;
    }
    const auto it = std::find_if(host_.devices.begin(), host_.devices.end(),
                                 [&](const DeviceSpec& device) { return device.name == name.scalar; });
    if (it == host_.devices.end()) {
      std::vector<std::string> names;
      for (const auto& device : host_.devices) names.push_back(device.name);
      faults_.push_back(name.error(fmt::format("the host has no device '{}'", name.scalar),
                                   meant_hint(near_names(name.scalar, names, 1))));
      return;
    }
    const bool is_gpu_mode = mode.scalar == "passthrough" || mode.scalar == "vgpu" || mode.scalar == "mig";
    const bool is_nic_mode = mode.scalar != "vgpu" && mode.scalar != "mig";
    if (it->kind == DeviceKind::gpu && is_gpu_mode) {
      guest_.gpu_by_name[name.scalar] = from_choice(mode, {GpuMode::passthrough, GpuMode::vgpu, GpuMode::mig});
    } else if (it->kind == DeviceKind::hca && is_nic_mode) {
      guest_.nic_by_name[name.scalar] = nic_mode(mode);
    } else {
      faults_.push_back(mode.error(
          fmt::format("'{}' is a {}, which cannot be handed over by {}", name.scalar, to_string(it->kind), mode.scalar),
          "GPUs take passthrough, vgpu or mig; adapters passthrough, sr-iov, pvrdma, vmxnet3 "
          "or virtio"));
    }
  }

  void read_pcie() {
    flag("above_4g_decoding", guest_.has_above_4g_decoding);
    if (const auto* mmio = node_.find("mmio")) {
      if (const auto* use = mmio->find("use_64bit")) guest_.uses_64bit_mmio = as_flag(*use);
      if (const auto* space = mmio->find("size")) guest_.mmio_size = as_size(*space);
    }
    flag("allow_p2p", guest_.allow_p2p);
    if (const auto* acs = node_.find("acs"))
      guest_.acs = from_choice(*acs, {AcsMode::redirect, AcsMode::direct_translated, AcsMode::off});
    flag("ats", guest_.has_ats);
    if (const auto* translation = node_.find("translation"))
      guest_.translation = from_choice(*translation, {PeerTranslation::cached, PeerTranslation::shared});
    if (const auto* seen = node_.find("guest_topology"))
      guest_.guest_topology =
          from_choice(*seen, {GuestTopology::shown, GuestTopology::hidden, GuestTopology::injected});
    if (const auto* holder = node_.find("nvswitches")) read_nvswitches(*holder);
  }

  void read_nvswitches(const Node& holder) {
    guest_.nvswitches = from_choice(holder, {NvswitchMode::passthrough, NvswitchMode::shared});
    const bool has_nvswitch = std::any_of(host_.devices.begin(), host_.devices.end(),
                                          [](const DeviceSpec& device) { return device.kind == DeviceKind::nvswitch; });
    if (!has_nvswitch) faults_.push_back(holder.error("the host has no NVSwitch", "remove 'nvswitches'"));
    if (guest_.gpu != GpuMode::passthrough)
      faults_.push_back(holder.error(fmt::format("'nvswitches' beside {} GPUs", to_string(guest_.gpu)),
                                     "it says who holds the switches below passed-through GPUs; remove it"));
    if (guest_.nvswitches == NvswitchMode::passthrough && guest_.vms_per_host > 1)
      faults_.push_back(
          holder.error(fmt::format("{} VMs of a host cannot all hold its NVSwitches", guest_.vms_per_host),
                       "write nvswitches: shared, or vms_per_host: 1"));
  }

  void read_gpu_sharing() {
    if (const auto* profile = node_.find("profile")) {
      if (profile->kind == Node::Kind::scalar) {
        guest_.profile = profile->scalar;
      } else {
        for (const auto& one : profile->items) guest_.profiles.push_back(one.scalar);
        if (!guest_.profiles.empty()) guest_.profile = guest_.profiles.front();
      }
    }
    if (const auto* scheduler = node_.find("scheduler"))
      guest_.scheduler =
          from_choice(*scheduler, {SharePolicy::best_effort, SharePolicy::equal_share, SharePolicy::fixed_share});
    if (const auto* slice = node_.find("time_slice")) {
      check_above_zero(*slice, "time_slice", Dimension::time, faults_);
      guest_.time_slice = from_seconds(as_quantity(*slice, Dimension::time));
    }
    integer("busy_neighbours", guest_.busy_neighbours);
    if (node_.find("vgpu_release") != nullptr) {
      ReleaseNumber software;
      release("vgpu_release", "\"17.0\"", software);
      guest_.vgpu_release = software;
    }
    integer("firmware_functions", guest_.firmware_functions);
    size("host_memory", guest_.host_memory);
    if (const auto* sharing = node_.find("remote_sharing"))
      faults_.push_back(sharing->error("'remote_sharing' without 'vms'",
                                       "clients of one remote GPU are VMs with `remote: host.gpu`: list them"));
    flag("ecc", guest_.has_ecc);
    flag("unified_memory", guest_.has_unified_memory);
    if (const auto* share = node_.find("gpu_share")) guest_.gpu_share = as_quantity(*share, Dimension::number);
    size("gpu_memory", guest_.gpu_memory);
  }

  const Node& node_;
  const HostSpec& host_;
  Diagnostics& faults_;
  Virtualization guest_;
};

}  // namespace

void check_above_zero(const Node& node, const char* key, Dimension dimension, Diagnostics& faults) {
  if (as_quantity(node, dimension) > 0) return;
  faults.push_back(node.error(fmt::format("'{}' is {}", key, node.scalar), "give more than 0, or leave it out"));
}

std::optional<int> read_mtu(const Node& node, Diagnostics& faults) {
  auto parsed = parse_quantity(node.scalar, Dimension::number);
  if (!parsed.ok) parsed = parse_quantity(node.scalar, Dimension::bytes);
  if (parsed.ok && parsed.value >= 576 && parsed.value <= 65536) return static_cast<int>(parsed.value);
  faults.push_back(
      node.error(fmt::format("'mtu' must be 576 to 65536 bytes, found '{}'", node.scalar), "write e.g. 9000"));
  return std::nullopt;
}

Virtualization read_virtualization(const Node& node, const HostSpec& host, Diagnostics& faults) {
  return VirtualizationReader(node, host, faults).read();
}

void override_virtualization(const Node& scenario, Node& topology) {
  const auto* wanted = scenario.find("virtualization");
  auto* hosts = topology.find("hosts");
  if (wanted == nullptr || hosts == nullptr) return;
  for (auto& group : hosts->items) {
    if (group.kind != Node::Kind::mapping) continue;
    std::erase_if(group.entries, [](const Node::Entry& entry) { return entry.key.scalar == "vms"; });
    if (auto* known = group.find("virtualization")) {
      *known = *wanted;
    } else {
      Node key = *wanted;
      key.kind = Node::Kind::scalar;
      key.scalar = "virtualization";
      key.items.clear();
      key.entries.clear();
      group.entries.push_back({std::move(key), *wanted});
    }
  }
}

}  // namespace fabricast::config
