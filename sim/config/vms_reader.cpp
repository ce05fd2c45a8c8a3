// SPDX-License-Identifier: Apache-2.0
// `vms:` of a host group: every VM with the devices it holds. What a VM does not say, `virtualization:` beside it does.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "config/virtualization.hpp"
#include "config/vm_devices_reader.hpp"

namespace fabricast::config {

namespace {

constexpr int k_most_vms = 1024;

Node scalar_like(const Node& near, std::string text) {
  Node node;
  node.kind = Node::Kind::scalar;
  node.scalar = std::move(text);
  node.source = near.source;
  node.line = near.line;
  node.column = near.column;
  return node;
}

/// Keys that read_virtualization does not know.
bool is_of_vm(const std::string& key) {
  static const std::set<std::string> keys{
      "name",       "count",      "devices",  "hardware_version", "guest_os",
      "port_group", "cpu_shares", "cpu_load", "gpu_load",         "dynamic_directpath"};
  return keys.count(key) > 0;
}

VirtualMode mode_of(const std::vector<VmDevice>& devices) {
  const auto has_gpu = [&](GpuMode mode) {
    return std::ranges::any_of(devices, [&](const VmDevice& one) { return one.gpu == mode; });
  };
  const auto has_nic = [&](NicMode mode) {
    return std::ranges::any_of(devices, [&](const VmDevice& one) { return one.nic == mode; });
  };
  if (has_gpu(GpuMode::remote)) return VirtualMode::remote_gpu;
  if (has_gpu(GpuMode::vgpu)) return VirtualMode::vgpu;
  if (has_gpu(GpuMode::mig)) return VirtualMode::mig;
  if (has_nic(NicMode::pvrdma)) return VirtualMode::pvrdma;
  if (has_nic(NicMode::sr_iov)) return VirtualMode::sr_iov;
  if (has_nic(NicMode::vmxnet3) || has_nic(NicMode::virtio)) return VirtualMode::tcp;
  return VirtualMode::passthrough;
}

class VmsReader {
 public:
  VmsReader(const Node& vms, const Node* settings, HostSpec& host, Diagnostics& faults)
      : vms_(vms), settings_(settings), host_(host), faults_(faults), devices_(host, faults) {}

  Virtualization read() {
    check_settings();
    std::vector<std::shared_ptr<const Virtualization>> all;
    for (const auto& node : vms_.items) {
      const int count = node.find("count") == nullptr ? 1 : static_cast<int>(as_integer(*node.find("count")));
      for (int i = 0; i < count && all.size() <= k_most_vms; ++i) {
        auto vm = read_vm(node, i);
        vm.vm_name = node.find("name")->scalar + (count == 1 ? "" : std::to_string(i));
        check_name(node, vm.vm_name);
        all.push_back(std::make_shared<const Virtualization>(std::move(vm)));
      }
    }
    if (all.empty()) faults_.push_back(vms_.error("'vms' lists no VM", "add one, or remove `vms`"));
    if (all.size() > k_most_vms)
      faults_.push_back(vms_.error(fmt::format("more than {} VMs on one host", k_most_vms),
                                   "ESXi holds at most 1024 on a host: lower the counts"));
    auto host = all.empty() ? Virtualization{} : *all.front();
    host.vm_name.clear();
    host.devices.clear();
    host.numa_nodes.clear();
    host.location = vms_.location();
    host.vms = with_neighbours(std::move(all));
    return host;
  }

 private:
  void check_settings() {
    if (settings_ == nullptr || settings_->kind != Node::Kind::mapping) {
      if (settings_ != nullptr)
        faults_.push_back(settings_->error(
            fmt::format("'virtualization: {}' beside 'vms'", settings_->scalar),
            "the VMs say how they get their devices: write host settings here, e.g. {hypervisor: kvm}, or remove it"));
      return;
    }
    static const std::set<std::string> of_short_form{
        "mode",    "gpu",       "nic",        "devices",    "vms_per_host",
        "profile", "gpu_share", "gpu_memory", "rate_limit", "busy_neighbours"};
    for (const auto& entry : settings_->entries) {
      if (of_short_form.count(entry.key.scalar) > 0)
        faults_.push_back(entry.key.error(fmt::format("'{}' beside 'vms'", entry.key.scalar),
                                          "each VM says it for its own devices: move it there"));
    }
  }

  void check_name(const Node& node, const std::string& name) {
    const auto& written = *node.find("name");
    if (name.empty() || name.find_first_of("./ ") != std::string::npos)
      faults_.push_back(
          written.error(fmt::format("a VM is called '{}'", name), "use a name without dots, slashes and spaces"));
    if (!names_.insert(name).second)
      faults_.push_back(
          written.error(fmt::format("two VMs of the host are called '{}'", name), "give each its own name"));
  }

  /// The host's settings, the VM's over them, as one mapping for the reader of both.
  [[nodiscard]] Node merged(const Node& vm, VirtualMode mode) const {
    Node all = vm;
    all.entries.clear();
    all.entries.push_back({scalar_like(vm, "mode"), scalar_like(vm, std::string(to_string(mode)))});
    if (settings_ != nullptr) {
      for (const auto& entry : settings_->entries)
        if (vm.find(entry.key.scalar) == nullptr && entry.key.scalar != "mode" && entry.key.scalar != "remote_sharing")
          all.entries.push_back(entry);
    }
    for (const auto& entry : vm.entries)
      if (!is_of_vm(entry.key.scalar)) all.entries.push_back(entry);
    return all;
  }

  Virtualization read_vm(const Node& node, int index) {
    const auto devices = devices_.read(node, index);
    Diagnostics own;
    auto vm = read_virtualization(merged(node, mode_of(devices)), host_, own);
    if (index == 0) faults_.insert(faults_.end(), own.begin(), own.end());
    for (const auto& entry : node.entries) vm.locations[entry.key.scalar] = entry.key.location();
    vm.location = node.location();
    vm.devices = devices;
    for (const auto& one : devices) {
      if (one.gpu) vm.gpu_by_name[one.device] = *one.gpu;
      if (one.nic) vm.nic_by_name[one.device] = *one.nic;
    }
    for (auto it = devices.rbegin(); it != devices.rend(); ++it) {
      if (it->gpu) vm.gpu = *it->gpu;
      if (it->nic) vm.nic = *it->nic;
      if (it->gpu && *it->gpu == GpuMode::remote) {
        vm.gpu_share = it->share;
        vm.gpu_memory = it->memory;
      }
    }
    if (!vm.locations.contains("nvswitches") && !holds_all_gpus(vm)) vm.nvswitches = NvswitchMode::shared;
    read_placing(node, vm);
    const auto* sharing = settings_ == nullptr ? nullptr : settings_->find("remote_sharing");
    vm.queues_for_remote = sharing != nullptr && sharing->scalar == "queue";
    return vm;
  }

  /// Only such a VM may hold the NVSwitches too.
  [[nodiscard]] bool holds_all_gpus(const Virtualization& vm) const {
    return std::ranges::all_of(host_.devices, [&](const DeviceSpec& device) {
      const bool is_gpu = device.kind == DeviceKind::gpu && device.card.empty() && !device.type.empty();
      return !is_gpu || std::ranges::find(vm.devices, device.name, &VmDevice::device) != vm.devices.end();
    });
  }

  void read_placing(const Node& node, Virtualization& vm) {
    if (const auto* numa = node.find("numa")) read_numa(*numa, vm);
    if (const auto* version = node.find("hardware_version"))
      vm.hardware_version = static_cast<int>(as_integer(*version));
    if (const auto* system = node.find("guest_os"))
      vm.guest_system = system->scalar == "windows" ? GuestSystem::windows : GuestSystem::linux_;
    if (const auto* shares = node.find("cpu_shares")) vm.cpu_shares = static_cast<double>(as_integer(*shares));
    if (const auto* load = node.find("cpu_load")) vm.cpu_load = as_quantity(*load, Dimension::number);
    if (const auto* load = node.find("gpu_load")) vm.has_own_work = as_flag(*load);
    if (const auto* dynamic = node.find("dynamic_directpath")) vm.has_dynamic_directpath = as_flag(*dynamic);
    if (const auto* group = node.find("port_group")) {
      if (const auto* name = group->find("name")) vm.port_group = name->scalar;
      if (const auto* vlan = group->find("vlan")) vm.vlan = static_cast<int>(as_integer(*vlan));
      if (const auto* priority = group->find("priority")) vm.priority = static_cast<int>(as_integer(*priority));
      if (const auto* shares = group->find("shares")) vm.network_shares = static_cast<double>(as_integer(*shares));
      if (const auto* mtu = group->find("mtu")) vm.mtu = read_mtu(*mtu, faults_).value_or(vm.mtu);
      for (const auto& entry : group->entries) vm.locations["port_group." + entry.key.scalar] = entry.key.location();
      if (vm.priority && vm.vlan == 0)
        faults_.push_back(group->find("priority")
                              ->error("a priority on untagged frames", "only tagged frames carry one: add `vlan`"));
    }
  }

  void read_numa(const Node& node, Virtualization& vm) {
    const auto add = [&](const Node& one) {
      const auto socket = as_whole(one, 0, host_.num_sockets - 1);
      if (!socket) {
        faults_.push_back(
            one.error(fmt::format("'numa' is '{}'", one.scalar),
                      host_.num_sockets == 1
                          ? "the host has one socket, 0; or write on, off"
                          : fmt::format("sockets of the host are 0 to {}; or write on, off", host_.num_sockets - 1)));
        return;
      }
      vm.numa_nodes.push_back(*socket);
    };
    const bool is_flag = node.kind == Node::Kind::scalar && (node.scalar == "on" || node.scalar == "off" ||
                                                             node.scalar == "true" || node.scalar == "false");
    if (is_flag) return;
    if (node.kind == Node::Kind::scalar) return add(node);
    for (const auto& one : node.items) add(one);
  }

  /// What a VM needs to know of those beside it.
  std::vector<std::shared_ptr<const Virtualization>> with_neighbours(
      std::vector<std::shared_ptr<const Virtualization>> all) {
    double vcpus = 0;
    for (const auto& vm : all) vcpus += vm->vcpus.value_or(0) * vm->cpu_load;
    std::vector<std::shared_ptr<const Virtualization>> out;
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto vm = *all[i];
      vm.vms_on_host = static_cast<int>(all.size());
      vm.vcpus_on_host = vcpus;
      for (const auto& own : vm.devices) {
        if (own.gpu != GpuMode::vgpu) continue;
        const auto card = [](const VmDevice& one) { return one.card.empty() ? one.device : one.card; };
        int busy = 0;
        for (std::size_t k = 0; k < all.size(); ++k) {
          for (const auto& other : all[k]->devices) {
            const bool is_itself = k == i && other.device == own.device;
            if (!is_itself && other.gpu == GpuMode::vgpu && card(other) == card(own) && all[k]->has_own_work) ++busy;
          }
        }
        if (busy > 0) vm.busy_by_name[own.device] = busy;
      }
      out.push_back(std::make_shared<const Virtualization>(std::move(vm)));
    }
    return out;
  }

  const Node& vms_;
  const Node* settings_;
  HostSpec& host_;
  Diagnostics& faults_;
  VmDevicesReader devices_;
  std::set<std::string> names_;
};

}  // namespace

Virtualization read_vms(const Node& vms, const Node* settings, HostSpec& host, Diagnostics& faults) {
  return VmsReader(vms, settings, host, faults).read();
}

}  // namespace fabricast::config
