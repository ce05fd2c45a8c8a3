// SPDX-License-Identifier: Apache-2.0
// GPU by GPU, all VMs together: which vGPUs and MIG instances lie on one card, and whether they can
// (models/sharing/card_parts.cpp finds that, for migrations too).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "check/sources.hpp"
#include "check/vm_setup.hpp"
#include "fabricast/models/virtualization.hpp"
#include "fabricast/vgpu_mix.hpp"

namespace fabricast::check {

namespace {

constexpr const char* k_mig_guide = "NVIDIA MIG guide, supported profiles and placement";

/// One holder of a card.
struct Holder {
  std::size_t vm = 0;
  HeldGpu gpu;
};

std::optional<models::GpuProfile> profile_of(const VirtualHost& host, const HeldGpu& gpu) {
  return models::find_gpu_profile(models::profile_family(gpu.type, host.parameters), gpu.profile, host.parameters);
}

class ProfileRules : VmRules {
 public:
  using VmRules::VmRules;

  void run() {
    std::map<std::string, std::vector<Holder>> cards;
    for (std::size_t v = 0; v < vms_.size(); ++v) {
      for (const auto& gpu : vms_[v].gpus)
        if (gpu.mode != GpuMode::remote) cards[gpu.name].push_back({v, gpu});
    }
    for (const auto& [name, holders] : cards) check_card(name, holders);
  }

 private:
  void add(std::size_t vm, Severity severity, std::string key, std::string message, std::string fix,
           std::string source) {
    vm_ = vm;
    VmRules::add(severity, std::move(key), std::move(message), std::move(fix), std::move(source));
  }

  void check_card(const std::string& name, const std::vector<Holder>& holders) {
    const auto count = [&](GpuMode mode) {
      return std::ranges::count_if(holders, [&](const Holder& one) { return one.gpu.mode == mode; });
    };
    const auto& last = holders.back();
    if (count(GpuMode::passthrough) > 0 && holders.size() > 1 && is_described())
      add(last.vm, Severity::error, "devices",
          fmt::format("{} VMs hold {}, which one of them has by passthrough", holders.size(), name),
          "a passed-through GPU belongs to one VM: use vgpu or mig for all, or fewer VMs",
          "VMware, GPUs in vSphere 6.7, 2019");
    if (count(GpuMode::vgpu) > 0 && count(GpuMode::mig) > 0)
      add(last.vm, Severity::error, "devices",
          fmt::format("{} is split by MIG and time-sliced as a whole at once", name),
          "take MIG instances or vGPUs of the whole card", std::string(k_vgpu_guide) + ", MIG mode of the host");
    if (count(GpuMode::mig) > 0) check_mig(name, holders);
    if (count(GpuMode::vgpu) > 0) check_time_sliced(name, holders);
  }

  std::optional<models::GpuProfile> known_profile(const Holder& one) {
    const auto profile = profile_of(host_, one.gpu);
    const auto family = models::profile_family(one.gpu.type, host_.parameters);
    const auto* has =
        cell(host_, fmt::format("{}.{}", gpu_model(one.gpu.type), one.gpu.mode == GpuMode::mig ? "mig" : "vgpu"));
    if (models::gpu_profiles(family, host_.parameters).empty() && (has == nullptr || has->value != 0))
      add(one.vm, Severity::warning, "devices",
          fmt::format("profiles of {} are not known: neither '{}' nor how many fit is checked", one.gpu.type,
                      one.gpu.profile),
          "fabricast list profiles prints those that are known", k_vgpu_guide);
    if (!profile && is_described() && !models::gpu_profiles(family, host_.parameters).empty())
      add(one.vm, Severity::error, "devices", fmt::format("GPU {} has no profile '{}'", one.gpu.type, one.gpu.profile),
          "fabricast list profiles prints those of every GPU", k_vgpu_guide);
    return profile;
  }

  void check_mig(const std::string& name, const std::vector<Holder>& holders) {
    std::vector<models::GpuProfile> instances;
    std::vector<std::string> words;
    for (const auto& one : holders) {
      if (one.gpu.mode != GpuMode::mig || one.gpu.profile.empty()) continue;
      const auto profile = known_profile(one);
      if (!profile) return;
      if (!profile->is_mig) {
        add(one.vm, Severity::error, "devices",
            fmt::format("'{}' is a time-sliced profile, not one of MIG", one.gpu.profile),
            "take a profile like 2g.10gb, or vgpu", k_mig_guide);
        return;
      }
      instances.push_back(*profile);
      words.push_back(one.gpu.profile);
    }
    for (const auto& fault : models::card_faults(instances, 0, {}, host_.parameters))
      report_mig(fault, name, holders.back(), words);
  }

  void report_mig(const models::CardFault& fault, const std::string& name, const Holder& last,
                  const std::vector<std::string>& words) {
    const auto key = is_described() ? "devices" : "profile";
    if (fault.kind == models::CardFault::media_engines)
      add(last.vm, Severity::error, key,
          fmt::format("{} MIG instances of {} with media engines (+me), one may have them",
                      std::ranges::count_if(words, [](const std::string& word) { return word.ends_with("+me"); }),
                      name),
          "leave +me out of the others", k_mig_guide);
    else
      add(last.vm, Severity::error, key,
          fmt::format("MIG instances {} do not fit together on {} ({})", fmt::join(words, " + "), name, last.gpu.type),
          "each kind starts at certain memory slots only: take smaller instances, e.g. 3g + 3g for 4g + 4g",
          k_mig_guide);
  }

  void check_time_sliced(const std::string& name, const std::vector<Holder>& holders) {
    std::vector<models::GpuProfile> profiles;
    for (const auto& one : holders) {
      if (one.gpu.mode != GpuMode::vgpu) continue;
      if (one.gpu.profile.empty()) {
        if (holders.size() > 1 && is_described())
          add(one.vm, Severity::error, "devices",
              fmt::format("{} VMs hold {}, one of them the whole card", holders.size(), name),
              "give each a profile: gpu0: {vgpu: a100-10c}", k_vgpu_guide);
        return;
      }
      const auto profile = known_profile(one);
      if (!profile) return;
      if (profile->is_mig) {
        add(one.vm, Severity::error, "devices", fmt::format("'{}' is a MIG profile", one.gpu.profile),
            "write {mig: " + one.gpu.profile + "}", k_mig_guide);
        return;
      }
      profiles.push_back(*profile);
    }
    const auto& last = holders.back();
    const auto& guest = *vms_[last.vm].settings;
    const double capability = host_.parameters.value_or(last.gpu.type, "compute_capability", 70);
    const models::CardRules rules{unlike_sizes_bar(guest, capability, host_.parameters) == nullptr,
                                  unlike_series_bar(guest, host_.parameters) == nullptr,
                                  guest.scheduler == SharePolicy::fixed_share};
    const double whole = host_.parameters.value_or(last.gpu.type, "memory", 0) / 1073741824.0;
    for (const auto& fault : models::card_faults(profiles, whole, rules, host_.parameters))
      report_time_sliced(fault, name, last, profiles);
  }

  void report_time_sliced(const models::CardFault& fault, const std::string& name, const Holder& last,
                          const std::vector<models::GpuProfile>& profiles) {
    using Fault = models::CardFault;
    const auto& guest = *vms_[last.vm].settings;
    const auto key = is_described() ? "devices" : "profile";
    const auto& part = profiles[fault.part];
    // One word deals the same profile out to all: its sums are judged with the host (virtual_device_rules.cpp).
    const bool is_of_host =
        fault.kind == Fault::too_many || fault.kind == Fault::fixed_share || fault.kind == Fault::framebuffer;
    if (is_of_host && !is_described()) return;
    if (fault.kind == Fault::too_many) {
      add(last.vm, Severity::error, key,
          fmt::format("{} vGPUs of {} on one {}, it holds {}", profiles.size(), part.name, last.gpu.type,
                      part.max_instances),
          "take a smaller profile, or fewer VMs", k_vgpu_guide);
    } else if (fault.kind == Fault::unlike_series) {
      const auto& first = *unlike_series_bar(guest, host_.parameters);
      add(last.vm, Severity::error, key,
          fmt::format("vGPUs of unlike series on {} need ESXi {}, this is {}", name, release_words(first.value),
                      to_string(guest.version)),
          "take one series for all VMs, or a later release", first.source);
    } else if (fault.kind == Fault::unlike_sizes) {
      const double capability = host_.parameters.value_or(last.gpu.type, "compute_capability", 70);
      add(last.vm, Severity::error, key,
          fmt::format(
              "vGPUs of {} sizes on one {} ({}): all have one size before ESXi 8.0 U3 with vGPU 17, and before Volta",
              sizes_of(profiles).size(), last.gpu.type, name),
          "take one profile for all VMs, or a release with mixed sizes",
          unlike_sizes_bar(guest, capability, host_.parameters)->source);
    } else if (fault.kind == Fault::fixed_share) {
      add(last.vm, Severity::error, "scheduler", "mixed vGPU sizes do not work with the fixed share scheduler",
          "take one profile, or scheduler: equal_share", k_vgpu_guide);
    } else if (fault.kind == Fault::framebuffer) {
      double memory = 0;
      for (const auto& one : profiles) memory += one.framebuffer_gb;
      add(last.vm, Severity::error, key,
          fmt::format("profiles of {:g} GB together on {} with {:g} GB", memory, name,
                      host_.parameters.value_or(last.gpu.type, "memory", 0) / 1073741824.0),
          "take smaller profiles", k_vgpu_guide);
    } else {
      add(last.vm, Severity::error, key,
          fmt::format("{} vGPUs of {} beside other sizes, a {} holds {}",
                      std::ranges::count(profiles, part.name, &models::GpuProfile::name), part.name, last.gpu.type,
                      part.max_instances_mixed),
          "take fewer, or one size for all", part.source);
    }
  }

  static std::set<double> sizes_of(const std::vector<models::GpuProfile>& profiles) {
    std::set<double> out;
    for (const auto& one : profiles) out.insert(one.framebuffer_gb);
    return out;
  }
};

}  // namespace

bool is_whole_profile(const VirtualHost& host, const std::string& type, const std::string& name) {
  const auto profile = models::find_gpu_profile(models::profile_family(type, host.parameters), name, host.parameters);
  return profile && profile->max_instances == 1 && profile->memory_fraction >= 1;
}

void profile_rules(const VirtualHost& host, const std::vector<VmSetup>& vms, std::vector<VmFinding>& found) {
  ProfileRules(host, vms, found).run();
}

}  // namespace fabricast::check
