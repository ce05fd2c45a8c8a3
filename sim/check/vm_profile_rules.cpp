// SPDX-License-Identifier: Apache-2.0
// GPU by GPU, all VMs together: which vGPUs and MIG instances lie on one card, and whether they can. MIG: an instance
// of c compute slices and m memory slots starts at a slot the placement table allows, none overlap, compute slices
// suffice; found by search over starts, because sums do not tell ([4g, 4g] has the memory, and one start).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "check/sources.hpp"
#include "check/vm_setup.hpp"
#include "fabricast/models/virtualization.hpp"

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

/// Compute slices are the first number of "a100-40.3-20c".
MigKind kind_of(const models::GpuProfile& profile, int slots) {
  const auto dot = profile.name.find('.');
  return {std::atoi(profile.name.c_str() + dot + 1), static_cast<int>(std::lround(profile.memory_fraction * slots))};
}

bool place(std::vector<MigKind>& left, std::uint32_t used, int compute, int slots, const ParameterSet& parameters) {
  if (left.empty()) return true;
  const auto one = left.back();
  if (one.compute > compute) return false;
  const auto* starts = parameters.find(fmt::format("mig_placement.{}.{}g{}.starts", slots, one.compute, one.slots));
  if (starts == nullptr) return false;
  left.pop_back();
  bool is_placed = false;
  for (int s = 0; s + one.slots <= slots && !is_placed; ++s) {
    const std::uint32_t own = ((1U << static_cast<unsigned>(one.slots)) - 1) << static_cast<unsigned>(s);
    const bool may_start = (static_cast<std::uint32_t>(starts->value) >> static_cast<unsigned>(s) & 1U) != 0;
    if (may_start && (used & own) == 0) is_placed = place(left, used | own, compute - one.compute, slots, parameters);
  }
  left.push_back(one);
  return is_placed;
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
    std::vector<MigKind> instances;
    std::vector<std::string> words;
    int slots = 8;
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
      const auto* memory = host_.parameters.find(fmt::format("mig.{}.memory_slices", profile->family));
      slots = memory == nullptr ? 8 : static_cast<int>(memory->value);
      instances.push_back(kind_of(*profile, slots));
      words.push_back(one.gpu.profile);
    }
    const auto media = std::ranges::count_if(words, [](const std::string& word) { return word.ends_with("+me"); });
    if (media > 1)
      add(holders.back().vm, Severity::error, is_described() ? "devices" : "profile",
          fmt::format("{} MIG instances of {} with media engines (+me), one may have them", media, name),
          "leave +me out of the others", k_mig_guide);
    if (instances.empty() || can_place(instances, slots, host_.parameters)) return;
    add(holders.back().vm, Severity::error, is_described() ? "devices" : "profile",
        fmt::format("MIG instances {} do not fit together on {} ({})", fmt::join(words, " + "), name,
                    holders.back().gpu.type),
        "each kind starts at certain memory slots only: take smaller instances, e.g. 3g + 3g for 4g + 4g", k_mig_guide);
  }

  void check_time_sliced(const std::string& name, const std::vector<Holder>& holders) {
    std::vector<models::GpuProfile> profiles;
    std::set<double> sizes;
    std::set<char> series;
    double memory = 0;
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
      sizes.insert(profile->framebuffer_gb);
      series.insert(one.gpu.profile.back());
      memory += profile->framebuffer_gb;
    }
    const auto& last = holders.back();
    const int most = sizes.size() > 1 ? 0 : profiles.front().max_instances;
    if (most > 0 && static_cast<int>(profiles.size()) > most && is_described())
      add(last.vm, Severity::error, "devices",
          fmt::format("{} vGPUs of {} on one {}, it holds {}", profiles.size(), profiles.front().name, last.gpu.type,
                      most),
          "take a smaller profile, or fewer VMs", k_vgpu_guide);
    if (sizes.size() > 1)
      check_mixed(name, last, memory, profiles);
    else if (series.size() > 1)
      check_series(name, last);
  }

  void check_series(const std::string& name, const Holder& last) {
    const auto& guest = *vms_[last.vm].settings;
    vm_ = last.vm;
    if (!is_too_old(cell(host_, "esxi_mixed_series_first"))) return;
    const auto& first = *cell(host_, "esxi_mixed_series_first");
    add(last.vm, Severity::error, is_described() ? "devices" : "profile",
        fmt::format("vGPUs of unlike series on {} need ESXi {}, this is {}", name, release_words(first.value),
                    to_string(guest.version)),
        "take one series for all VMs, or a later release", first.source);
  }

  void check_mixed(const std::string& name, const Holder& last, double memory,
                   const std::vector<models::GpuProfile>& profiles) {
    const auto& guest = *vms_[last.vm].settings;
    const auto key = is_described() ? "devices" : "profile";
    const double capability = host_.value(last.gpu.type, "compute_capability", 70);
    const auto& least = *cell(host_, "vgpu_mixed_sizes_capability");
    const auto& software = *cell(host_, "vgpu_mixed_sizes_first");
    const auto& release = *cell(host_, "esxi_mixed_sizes_first");
    const bool is_old_software = guest.vgpu_release && release_code(*guest.vgpu_release) < software.value;
    vm_ = last.vm;
    if (capability < least.value || is_old_software || is_too_old(&release)) {
      const auto& cause = capability < least.value ? least : (is_old_software ? software : release);
      add(last.vm, Severity::error, key,
          fmt::format(
              "vGPUs of {} sizes on one {} ({}): all have one size before ESXi 8.0 U3 with vGPU 17, and before Volta",
              std::set<double>(sizes_of(profiles)).size(), last.gpu.type, name),
          "take one profile for all VMs, or a release with mixed sizes", cause.source);
      return;
    }
    if (guest.scheduler == SharePolicy::fixed_share && is_described())
      add(last.vm, Severity::error, "scheduler", "mixed vGPU sizes do not work with the fixed share scheduler",
          "take one profile, or scheduler: equal_share", k_vgpu_guide);
    const double whole = host_.value(last.gpu.type, "memory", 0) / 1073741824.0;
    if (memory > 1.01 * whole && is_described())
      add(last.vm, Severity::error, key,
          fmt::format("profiles of {:g} GB together on {} with {:g} GB", memory, name, whole), "take smaller profiles",
          k_vgpu_guide);
    for (const auto& profile : profiles) {
      const auto same = std::ranges::count(profiles, profile.name, &models::GpuProfile::name);
      if (profile.max_instances_mixed == 0 || same <= profile.max_instances_mixed) continue;
      add(last.vm, Severity::error, key,
          fmt::format("{} vGPUs of {} beside other sizes, a {} holds {}", same, profile.name, last.gpu.type,
                      profile.max_instances_mixed),
          "take fewer, or one size for all", profile.source);
      return;
    }
  }

  static std::set<double> sizes_of(const std::vector<models::GpuProfile>& profiles) {
    std::set<double> out;
    for (const auto& one : profiles) out.insert(one.framebuffer_gb);
    return out;
  }
};

}  // namespace

bool can_place(const std::vector<MigKind>& instances, int slots, const ParameterSet& parameters) {
  auto left = instances;
  std::ranges::sort(left, {}, [](const MigKind& one) { return std::pair(one.slots, one.compute); });
  const auto* compute = parameters.find(fmt::format("mig_placement.{}.compute", slots));
  return compute != nullptr && place(left, 0, static_cast<int>(compute->value), slots, parameters);
}

bool is_whole_profile(const VirtualHost& host, const std::string& type, const std::string& name) {
  const auto profile = models::find_gpu_profile(models::profile_family(type, host.parameters), name, host.parameters);
  return profile && profile->max_instances == 1 && profile->memory_fraction >= 1;
}

void profile_rules(const VirtualHost& host, const std::vector<VmSetup>& vms, std::vector<VmFinding>& found) {
  ProfileRules(host, vms, found).run();
}

}  // namespace fabricast::check
