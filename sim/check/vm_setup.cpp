// SPDX-License-Identifier: Apache-2.0
#include "check/vm_setup.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fabricast::check {

namespace {

std::vector<const DeviceSpec*> devices_of(const HostGroupSpec& group, DeviceKind kind) {
  std::vector<const DeviceSpec*> out;
  for (const auto& device : group.host.devices)
    if (device.kind == kind) out.push_back(&device);
  return out;
}

VmSetup described(const HostGroupSpec& group, const Virtualization& vm) {
  VmSetup out;
  out.name = vm.vm_name;
  out.settings = &vm;
  for (const auto& held : vm.devices) {
    const auto device = std::ranges::find(group.host.devices, held.device, &DeviceSpec::name);
    if (device == group.host.devices.end()) continue;
    if (held.gpu)
      out.gpus.push_back({held.card.empty() ? held.device : held.card, device->type, *held.gpu, held.profile});
    if (held.nic)
      out.nics.push_back({held.device, device->type, *held.nic, held.functions, held.rate_limit.has_value()});
  }
  return out;
}

/// Whether the `index`-th of `count` devices goes to `vm` when they are dealt out in order to `vms`.
bool is_dealt(std::size_t index, std::size_t count, std::size_t vm, std::size_t vms) {
  return count >= vms ? index * vms / count == vm : vm * count / vms == index;
}

VmSetup dealt(const VirtualHost& host, std::size_t vm, std::size_t vms) {
  VmSetup out;
  out.name = vms > 1 ? fmt::format("VM {}", vm) : std::string();
  out.settings = &host.guest;
  const auto gpus = devices_of(host.group, DeviceKind::gpu);
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    if (is_dealt(g, gpus.size(), vm, vms))
      out.gpus.push_back({gpus[g]->name, gpus[g]->type, host.guest.gpu_mode(gpus[g]->name), host.guest.profile});
  }
  const auto nics = devices_of(host.group, DeviceKind::hca);
  for (std::size_t h = 0; h < nics.size(); ++h) {
    const auto mode = host.guest.nic_mode(nics[h]->name);
    if (is_shareable(mode) || is_dealt(h, nics.size(), vm, vms))
      out.nics.push_back({nics[h]->name, nics[h]->type, mode, 1, host.guest.rate_limit.has_value()});
  }
  return out;
}

}  // namespace

HeldModes VmSetup::modes() const {
  HeldModes out;
  for (const auto& one : gpus) out.gpus.push_back(one.mode);
  for (const auto& one : nics) out.nics.push_back(one.mode);
  return out;
}

std::vector<VmSetup> vm_setups(const VirtualHost& host) {
  std::vector<VmSetup> out;
  const auto& settings = *host.group.host.virtualization;
  for (const auto& vm : settings.vms) out.push_back(described(host.group, *vm));
  if (!out.empty()) return out;
  const auto vms = static_cast<std::size_t>(std::max(1, host.guest.vms_per_host));
  for (std::size_t vm = 0; vm < vms; ++vm) out.push_back(dealt(host, vm, vms));
  // Several profiles on one GPU: a VM for each.
  if (host.guest.profiles.size() > 1 && !out.front().gpus.empty()) {
    const auto first = out.front();
    out.clear();
    for (const auto& profile : host.guest.profiles) {
      out.push_back(first);
      out.back().gpus.resize(1);
      out.back().gpus.front().profile = profile;
    }
  }
  return out;
}

std::string gpu_model(const std::string& type) { return type.substr(0, type.find('-')); }

int release_code(const ReleaseNumber& release) { return 100 * release.major + 10 * release.minor + release.update; }

std::string release_words(double code) { return to_string(release_of_code(code)); }

const Parameter* cell(const VirtualHost& host, const std::string& name) {
  return host.parameters.find("support." + name);
}

Severity severity_of(const Parameter& cell) {
  return cell.confidence == Confidence::high || cell.confidence == Confidence::medium ? Severity::error
                                                                                      : Severity::warning;
}

}  // namespace fabricast::check
