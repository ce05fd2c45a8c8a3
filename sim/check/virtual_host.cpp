// SPDX-License-Identifier: Apache-2.0
#include "check/virtual_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "check/vm_setup.hpp"

namespace fabricast {

namespace check {

std::string VirtualHost::protocol(const std::string& type) const {
  if (types == nullptr) return {};
  const auto found = std::ranges::find(*types, type, &DeviceType::name);
  if (found == types->end()) return {};
  const auto protocol = found->attributes.find("protocol");
  return protocol == found->attributes.end() ? std::string() : protocol->second;
}

std::string VirtualHost::gpu_type() const {
  const auto all = gpus();
  return all.empty() ? std::string() : topology.device(all.front()).type;
}

bool VirtualHost::is_passed_through() const {
  const bool gpu = !gpus().empty() && guest.gpu == GpuMode::passthrough;
  const bool nic = !hcas().empty() && (guest.nic == NicMode::passthrough || guest.nic == NicMode::sr_iov);
  return gpu || nic;
}

bool VirtualHost::has_nvlink() const {
  const auto all = gpus();
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = a + 1; b < all.size(); ++b) {
      const auto path = topology.path_in_host(all[a], all[b]);
      if (!path || !path->uses_nvlink) return false;
    }
  }
  return all.size() > 1;
}

int VirtualHost::compute_capability() const {
  return static_cast<int>(parameters.value_or(gpu_type(), "compute_capability", 70));
}

Diagnostic report(const VirtualHost& host, const Finding& finding) {
  const auto vm = host.guest.vm_name.empty() ? std::string() : fmt::format(", VM '{}'", host.guest.vm_name);
  auto one = make_error(fmt::format("{} (group '{}'{})", finding.message, host.group.name, vm), finding.fix);
  one.severity = finding.severity;
  const auto written = host.guest.locations.find(finding.key);
  one.location = written != host.guest.locations.end() ? written->second
                 : host.guest.location.line > 0        ? host.guest.location
                                                       : host.group.location;
  if (!finding.source.empty()) one.notes.push_back({fmt::format("source: {}", finding.source), {}});
  return one;
}

}  // namespace check

namespace {

/// Rules by device. VMs of one `vms:` entry are equal: what all of them break is said once.
void check_vms(const check::VirtualHost& host, Diagnostics& found) {
  const auto vms = check::vm_setups(host);
  std::vector<check::VmFinding> findings;
  check::gpu_rules(host, vms, findings);
  check::profile_rules(host, vms, findings);
  check::adapter_rules(host, vms, findings);
  check::machine_rules(host, vms, findings);
  std::set<std::tuple<std::string, int, int>> said;
  for (const auto& [vm, finding] : findings) {
    const auto& settings = *vms[vm].settings;
    if (!said.insert({finding.message, settings.location.line, settings.location.column}).second) continue;
    found.push_back(
        check::report({host.topology, host.parameters, host.group, settings, host.host, host.types}, finding));
  }
}

/// PVRDMA connects VMs of one distributed switch only.
void check_switches(const Topology& topology, Diagnostics& found) {
  const Virtualization* first = nullptr;
  std::string first_name;
  std::set<std::string> said;
  const auto name_of = [&](int host, const HostGroupSpec& group) {
    return topology.virtualization(host).vm_name.empty() ? fmt::format("group '{}'", group.name)
                                                         : fmt::format("VM '{}'", topology.host_name(host));
  };
  int host = 0;
  for (const auto& group : topology.spec().hosts) {
    for (int vm = 0; vm < num_systems(group) / group.count; ++vm) {
      const auto& guest = topology.virtualization(host + vm);
      if (guest.nic != NicMode::pvrdma) continue;
      if (first == nullptr) {
        first = &guest;
        first_name = name_of(host + vm, group);
      }
      if (guest.switch_name == first->switch_name || !said.insert(guest.switch_name).second) continue;
      auto fault =
          make_error_at(guest.location,
                        fmt::format("PVRDMA adapters of {} and {} are on different distributed switches, '{}' and '{}'",
                                    first_name, name_of(host + vm, group), first->switch_name, guest.switch_name),
                        "attach all VMs to one distributed switch");
      fault.notes.push_back({"source: VMware documentation of PVRDMA: VMs must share one distributed switch", {}});
      found.push_back(std::move(fault));
    }
    host += num_systems(group);
  }
}

}  // namespace

Diagnostics check_virtualization(const Topology& topology, const ParameterSet& parameters,
                                 const std::vector<DeviceType>& types) {
  Diagnostics found;
  int first = 0;
  for (const auto& group : topology.spec().hosts) {
    const auto& guest = topology.virtualization(first);
    if (guest.is_virtual()) {
      for (int vm = 0; vm < num_systems(group) / group.count; ++vm) {
        const check::VirtualHost host{topology,   parameters, group, topology.virtualization(first + vm),
                                      first + vm, &types};
        for (const auto& finding : check::system_findings(host)) found.push_back(check::report(host, finding));
        for (const auto& finding : check::device_findings(host)) found.push_back(check::report(host, finding));
      }
      check_vms({topology, parameters, group, guest, first, &types}, found);
    } else if (guest.redirects_peers()) {
      const check::VirtualHost host{topology, parameters, group, guest, first};
      found.push_back(check::report(host, check::redirect_finding()));
    }
    first += num_systems(group);
  }
  check_switches(topology, found);
  for (auto& one : check::cluster_findings(topology, parameters, types)) found.push_back(std::move(one));
  return found;
}

namespace {

/// vGPUs reach each other over NVLink only: by the card, and by what the topology declares between cards.
Gate vgpu_nvlink_gate(const check::VirtualHost& host, const check::VmSetup& vm) {
  const auto& first = vm.gpus.front();
  if (first.mode != GpuMode::vgpu) return {};
  const auto* cell = check::cell(host, fmt::format("{}.nvlink_vgpu", check::gpu_model(first.type)));
  if (cell != nullptr && cell->value == 0)
    return {false, fmt::format("vGPUs have it over NVLink only, and a {} has none", first.type), false};
  if (host.has_nvlink()) return {};
  return {false, fmt::format("vGPUs have it over NVLink only, and the topology has none between {}", first.type),
          false};
}

/// What one VM may do, and what keeps it from the rest.
std::string feature_lines(const check::VirtualHost& host, const check::VmSetup& vm) {
  std::string out;
  const auto line = [&](std::string_view name, const Gate& gate, const std::string& condition = {}) {
    const auto word = gate.is_open ? "yes" : (gate.is_inferred ? "not documented" : "no");
    const auto& why = gate.is_open ? condition : gate.reason;
    out += why.empty() ? fmt::format("    {:<15} {}\n", name, word)
                       : fmt::format("    {:<15} {:<4} {}\n", name, word, why);
  };
  const auto& guest = *vm.settings;
  const auto held = vm.modes();
  for (const auto operation : vm_operations())
    line(to_string(operation), operation_gate(guest, held, operation, host.parameters),
         operation_condition(guest, held, operation, host.parameters));
  const bool is_whole = std::ranges::all_of(vm.gpus, [&](const check::HeldGpu& gpu) {
    return gpu.profile.empty() || check::is_whole_profile(host, gpu.type, gpu.profile);
  });
  const auto features = features_of(guest, is_whole, host.compute_capability());
  if (vm.gpus.empty()) return out;
  line("GPU sharing", features.sharing);
  const bool has_nvlink = vm.modes().gpus.front() == GpuMode::passthrough && host.has_nvlink();
  if (has_nvlink)
    line("GPU peer access", {}, "over NVLink");
  else if (vm.gpus.size() > 1)
    line("GPU peer access", features.p2p.is_open ? vgpu_nvlink_gate(host, vm) : features.p2p);
  if (!vm.nics.empty()) line("GPUDirect RDMA", features.gpudirect);
  return out;
}

}  // namespace

std::string virtual_features(const Topology& topology, const ParameterSet& parameters) {
  std::string out;
  int first = 0;
  for (const auto& group : topology.spec().hosts) {
    const auto& guest = topology.virtualization(first);
    const check::VirtualHost host{topology, parameters, group, guest, first};
    const int begin = first;
    first += num_systems(group);
    if (!guest.is_virtual()) continue;
    const auto version =
        guest.hypervisor == Hypervisor::esxi ? fmt::format(" {}", to_string(guest.version)) : std::string();
    const auto vms = check::vm_setups(host);
    if (guest.vm_name.empty()) {
      out += fmt::format("  {} x {}, {} on {}{}: GPUs by {}, adapters by {}\n", group.count, group.name,
                         to_string(guest.mode), to_string(guest.hypervisor), version, to_string(guest.gpu),
                         to_string(guest.nic));
      out += feature_lines(host, vms.front());
      continue;
    }
    std::set<std::pair<int, int>> seen;
    for (std::size_t vm = 0; vm < vms.size(); ++vm) {
      const auto& settings = *vms[vm].settings;
      if (!seen.insert({settings.location.line, settings.location.column}).second) continue;
      out += fmt::format("  {} x {}, VM {} on {}{}: {}\n", group.count, group.name, vms[vm].name,
                         to_string(guest.hypervisor), version, held_devices(settings));
      out += feature_lines({topology, parameters, group, settings, begin + static_cast<int>(vm)}, vms[vm]);
    }
  }
  return out;
}

}  // namespace fabricast
