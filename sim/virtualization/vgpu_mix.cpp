// SPDX-License-Identifier: Apache-2.0
#include "fabricast/vgpu_mix.hpp"

namespace fabricast {

namespace {

/// The release of the host's ESXi is before that of the cell; other hypervisors are never.
bool is_too_old_for(const Parameter* first, const Virtualization& host) {
  return first != nullptr && host.hypervisor == Hypervisor::esxi && host.version < release_of_code(first->value);
}

}  // namespace

const Parameter* unlike_sizes_bar(const Virtualization& host, double compute_capability,
                                  const ParameterSet& parameters) {
  const auto* least = parameters.find("support.vgpu_mixed_sizes_capability");
  const auto* software = parameters.find("support.vgpu_mixed_sizes_first");
  const auto* release = parameters.find("support.esxi_mixed_sizes_first");
  if (least != nullptr && compute_capability < least->value) return least;
  const bool is_old_software =
      software != nullptr && host.vgpu_release && *host.vgpu_release < release_of_code(software->value);
  if (is_old_software) return software;
  return is_too_old_for(release, host) ? release : nullptr;
}

const Parameter* unlike_series_bar(const Virtualization& host, const ParameterSet& parameters) {
  const auto* first = parameters.find("support.esxi_mixed_series_first");
  return is_too_old_for(first, host) ? first : nullptr;
}

}  // namespace fabricast
