// SPDX-License-Identifier: Apache-2.0
// vGPU and MIG profiles against the published tables: the GPU has the profile, and holds as many as are asked for.
#include <fmt/format.h>

#include "check/virtual_host.hpp"
#include "fabricast/models/virtualization.hpp"

namespace fabricast::check {

namespace {

std::string names_of(const std::vector<models::GpuProfile>& profiles, const std::string& family) {
  std::string names;
  for (const auto& profile : profiles) names += (names.empty() ? "" : ", ") + profile.name.substr(family.size() + 1);
  return names;
}

}  // namespace

std::vector<Finding> profile_findings(const VirtualHost& host) {
  const auto& guest = host.guest;
  const bool is_mig = guest.gpu == GpuMode::mig;
  if (guest.profile.empty() || host.gpus().empty() || (guest.gpu != GpuMode::vgpu && !is_mig)) return {};
  const auto family = models::profile_family(host.gpu_type(), host.parameters);
  const auto known = models::gpu_profiles(family, host.parameters);
  if (known.empty()) return {};
  const auto profile = models::find_gpu_profile(family, guest.profile, host.parameters);
  if (!profile) {
    return {{Severity::error, "profile", fmt::format("GPU type {} has no profile '{}'", host.gpu_type(), guest.profile),
             "its profiles are " + names_of(known, family), known.front().source}};
  }
  std::vector<Finding> found;
  const int per_gpu = guest.busy_neighbours + 1;
  if (per_gpu > profile->max_instances) {
    found.push_back({Severity::error, "busy_neighbours",
                     fmt::format("{} vGPUs of profile {} on one GPU, one {} holds {}", per_gpu, profile->name,
                                 host.gpu_type(), profile->max_instances),
                     "take a smaller profile, or fewer VMs per GPU", profile->source});
  }
  const auto places = profile->max_instances * static_cast<int>(host.gpus().size());
  if (guest.vms_per_host > places) {
    found.push_back({Severity::error, "vms_per_host",
                     fmt::format("{} VMs with profile {} on a host whose {} GPUs hold {}", guest.vms_per_host,
                                 profile->name, host.gpus().size(), places),
                     "take a smaller profile, or fewer VMs per host", profile->source});
  }
  return found;
}

}  // namespace fabricast::check
