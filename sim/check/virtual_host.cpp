// SPDX-License-Identifier: Apache-2.0
#include "check/virtual_host.hpp"

#include <fmt/format.h>

#include "fabricast/models/virtualization.hpp"

namespace fabricast {

namespace check {

double VirtualHost::value(const std::string& type, const char* field, double fallback) const {
  const auto* parameter = parameters.find(fmt::format("{}.{}", type, field));
  return parameter == nullptr ? fallback : parameter->value;
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

bool VirtualHost::is_whole_gpu() const {
  if (guest.profile.empty()) return true;
  const auto profile =
      models::find_gpu_profile(models::profile_family(gpu_type(), parameters), guest.profile, parameters);
  return profile && profile->max_instances == 1 && profile->memory_fraction >= 1;
}

int VirtualHost::compute_capability() const { return static_cast<int>(value(gpu_type(), "compute_capability", 70)); }

Diagnostic report(const VirtualHost& host, const Finding& finding) {
  auto one = make_error(fmt::format("{} (group '{}')", finding.message, host.group.name), finding.fix);
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

/// PVRDMA connects VMs of one distributed switch only.
void check_switches(const Topology& topology, Diagnostics& found) {
  const Virtualization* first = nullptr;
  const HostGroupSpec* first_group = nullptr;
  int host = 0;
  for (const auto& group : topology.spec().hosts) {
    const auto& guest = topology.virtualization(host);
    host += group.count;
    if (guest.nic != NicMode::pvrdma) continue;
    if (first == nullptr) {
      first = &guest;
      first_group = &group;
      continue;
    }
    if (guest.switch_name == first->switch_name) continue;
    auto fault = make_error_at(
        guest.location,
        fmt::format("PVRDMA adapters of groups '{}' and '{}' are on different distributed switches, '{}' and '{}'",
                    first_group->name, group.name, first->switch_name, guest.switch_name),
        "attach all VMs to one distributed switch");
    fault.notes.push_back({"source: VMware documentation of PVRDMA: VMs must share one distributed switch", {}});
    found.push_back(std::move(fault));
  }
}

}  // namespace

Diagnostics check_virtualization(const Topology& topology, const ParameterSet& parameters) {
  Diagnostics found;
  int first = 0;
  for (const auto& group : topology.spec().hosts) {
    const auto& guest = topology.virtualization(first);
    if (guest.is_virtual()) {
      const check::VirtualHost host{topology, parameters, group, guest, first};
      for (const auto& finding : check::system_findings(host)) found.push_back(check::report(host, finding));
      for (const auto& finding : check::device_findings(host)) found.push_back(check::report(host, finding));
    } else if (guest.redirects_peers()) {
      const check::VirtualHost host{topology, parameters, group, guest, first};
      found.push_back(check::report(host, check::redirect_finding()));
    }
    first += group.count;
  }
  check_switches(topology, found);
  return found;
}

std::string virtual_features(const Topology& topology, const ParameterSet& parameters) {
  std::string out;
  int first = 0;
  for (const auto& group : topology.spec().hosts) {
    const auto& guest = topology.virtualization(first);
    const check::VirtualHost host{topology, parameters, group, guest, first};
    first += group.count;
    if (!guest.is_virtual()) continue;
    const auto version =
        guest.hypervisor == Hypervisor::esxi ? fmt::format(" {}", to_string(guest.version)) : std::string();
    out += fmt::format("  {} x {}, {} on {}{}: GPUs by {}, adapters by {}\n", group.count, group.name,
                       to_string(guest.mode), to_string(guest.hypervisor), version, to_string(guest.gpu),
                       to_string(guest.nic));
    const auto features = features_of(guest, host.is_whole_gpu(), host.compute_capability());
    const auto line = [&](const char* name, const Gate& gate) {
      out += fmt::format("    {:<15} {}{}\n", name, gate.is_open ? "yes" : "no  ", gate.reason);
    };
    line("migration, DRS", features.migration);
    line("snapshot", features.snapshot);
    line("GPU sharing", features.sharing);
    line("GPU peer access", features.p2p);
    line("GPUDirect RDMA", features.gpudirect);
  }
  return out;
}

}  // namespace fabricast
