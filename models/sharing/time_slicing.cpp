// SPDX-License-Identifier: Apache-2.0
// From what a scenario says of a shared GPU to its scheduler, with every fault of the combination.
#include <fmt/format.h>

#include "base/parameter_name.hpp"
#include "fabricast/models/virtualization.hpp"

namespace fabricast::models {

namespace {

int num_clients(const GpuSharing& sharing, bool beside_workload) {
  int count = beside_workload ? 1 : 0;
  for (const auto& client : sharing.clients) count += client.count;
  return count;
}

/// Reads profile names of a family for a message: "40c, 20c, ...".
std::string known_profiles(const std::string& family, const ParameterSet& parameters) {
  std::string names;
  for (const auto& profile : gpu_profiles(family, parameters))
    names += (names.empty() ? "" : ", ") + profile.name.substr(family.size() + 1);
  return names;
}

class Faults {
 public:
  explicit Faults(const GpuSharing& sharing) : sharing_(sharing) {}
  void add(std::string message, std::string hint) {
    all_.push_back(make_error_at(sharing_.location, std::move(message), std::move(hint)));
  }
  [[nodiscard]] const Diagnostics& all() const { return all_; }

 private:
  const GpuSharing& sharing_;
  Diagnostics all_;
};

void check_profile(const ParameterSet& parameters, const GpuSharing& sharing, const std::string& type, int clients,
                   Faults& faults) {
  if (sharing.profile.empty()) return;
  const auto family = profile_family(type, parameters);
  const auto profile = find_gpu_profile(family, sharing.profile, parameters);
  if (!profile) {
    const auto names = known_profiles(family, parameters);
    faults.add(fmt::format("GPU type {} has no profile '{}'", type, sharing.profile),
               names.empty() ? "no profiles of this GPU are known" : "its profiles are " + names);
    return;
  }
  if (clients > profile->max_instances) {
    faults.add(
        fmt::format("{} clients of profile {}, one {} holds {}", clients, profile->name, type, profile->max_instances),
        "take a smaller profile, or put the others on another GPU");
  }
}

}  // namespace

Result<TimeSlicing> time_slicing(const ParameterSet& parameters, const GpuSharing& sharing,
                                 const std::string& gpu_type) {
  Faults faults(sharing);
  const int clients = num_clients(sharing, !sharing.is_whole_workload);
  check_profile(parameters, sharing, gpu_type, clients, faults);
  const auto profile = sharing.profile.empty()
                           ? std::nullopt
                           : find_gpu_profile(profile_family(gpu_type, parameters), sharing.profile, parameters);
  const int most = profile ? profile->max_instances : clients;
  TimeSlicing out;
  out.policy = sharing.policy;
  out.max_clients = most;
  out.is_strict = sharing.is_strict;
  out.averaging = sharing.averaging.value_or(out.averaging);
  out.slice = default_vgpu_slice(most);
  if (sharing.rm_pvmrl) {
    auto read = scheduler_from_rm_pvmrl(*sharing.rm_pvmrl, most);
    if (read) {
      out = *read;
    } else {
      faults.add(read.error().front().message, read.error().front().notes.front().text);
    }
  }
  // Best effort leaves the slice to the hardware; the setting has no effect on it.
  if (out.policy == SharePolicy::best_effort) out.slice = parameters["gpu.time_slice"_key];
  if (sharing.slice) out.slice = *sharing.slice;
  out.switch_time = sharing.switch_time.value_or(parameters["gpu.context_switch_time"_key]);
  out.preemption_granularity = sharing.preemption_granularity;
  if (out.slice <= out.switch_time) {
    faults.add(fmt::format("a time slice of {} is not longer than a context switch of {}", to_string(out.slice),
                           to_string(out.switch_time)),
               "raise 'slice'");
  }
  if (!faults.all().empty()) return tl::unexpected(faults.all());
  return out;
}

}  // namespace fabricast::models
