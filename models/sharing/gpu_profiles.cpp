// SPDX-License-Identifier: Apache-2.0
// vGPU and MIG profiles from the parameters `vgpu.<family>.<profile>.instances` and `mig.<family>.<profile>.*`
// (models/params/gpu-profiles.yaml). A family is a GPU model and its memory; the number of a profile is its
// framebuffer.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>

#include "base/parameter_name.hpp"
#include "base/text.hpp"
#include "fabricast/models/virtualization.hpp"

namespace fabricast::models {

namespace {

constexpr std::string_view k_time_sliced = "vgpu.";
constexpr std::string_view k_mig = "mig.";
constexpr std::string_view k_instances = ".instances";

/// The number before the series letter: 10 of "10c", 20 of "3-20c"; profiles of 512 MB are called "0q".
double framebuffer_of(std::string_view profile) {
  const auto dash = profile.rfind('-');
  if (dash != std::string_view::npos) profile.remove_prefix(dash + 1);
  double gb = 0;
  std::from_chars(profile.data(), profile.data() + profile.size(), gb);
  return gb > 0 ? gb : 0.5;
}

GpuProfile time_sliced(const std::string& family, const std::string& profile, const Parameter& instances,
                       const ParameterSet& parameters) {
  GpuProfile out;
  out.name = fmt::format("{}.{}", family, profile);
  out.family = family;
  out.framebuffer_gb = framebuffer_of(profile);
  out.max_instances = static_cast<int>(instances.value);
  if (const auto* mixed = parameters.find(named<"vgpu.{}.{}.mixed_instances">(family, profile)))
    out.max_instances_mixed = static_cast<int>(mixed->value);
  out.memory_fraction = 1;
  out.allows_peer_to_peer = out.max_instances == 1;
  out.source = instances.source;
  return out;
}

GpuProfile mig(const std::string& family, const std::string& profile, const Parameter& instances,
               const ParameterSet& parameters) {
  GpuProfile out;
  out.name = fmt::format("{}.{}", family, profile);
  out.family = family;
  out.is_mig = true;
  out.framebuffer_gb = framebuffer_of(profile);
  out.max_instances = static_cast<int>(instances.value);
  out.compute_fraction = parameters[named<"mig.{}.{}.sms">(family, profile)] / parameters[named<"mig.{}.sms">(family)];
  out.memory_fraction =
      parameters[named<"mig.{}.{}.memory_slices">(family, profile)] / parameters[named<"mig.{}.memory_slices">(family)];
  out.copy_engines = static_cast<int>(parameters[named<"mig.{}.{}.copy_engines">(family, profile)]);
  out.source = instances.source;
  return out;
}

/// Calls `visit(family, profile, parameter)` for every `<prefix><family>.<profile>.instances`.
template <typename Visit>
void for_each_profile(std::string_view prefix, const ParameterSet& parameters, Visit visit) {
  const auto& all = parameters.all();
  for (auto it = all.lower_bound(prefix); it != all.end() && it->first.starts_with(prefix); ++it) {
    const std::string_view name = it->first;
    if (!name.ends_with(k_instances)) continue;
    const auto inner = name.substr(prefix.size(), name.size() - prefix.size() - k_instances.size());
    const auto dot = inner.find('.');
    if (dot != std::string_view::npos)
      visit(std::string(inner.substr(0, dot)), std::string(inner.substr(dot + 1)), it->second);
  }
}

/// "grid_a100-10c", "A100D-10C", "10q" -> "10c"; "3g.20gb", "a100-3-20c" -> "3-20c".
std::string normal_profile_name(std::string_view given) {
  auto name = lower(given);
  for (const std::string_view prefix : {"grid_", "nvidia_", "nvidia "}) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  }
  // The GPU's name begins with a letter, a profile with a digit.
  if (!name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0) {
    const auto dash = name.find_first_of("-_.");
    if (dash == std::string::npos) return name;
    name.erase(0, dash + 1);
  }
  if (name.ends_with("+me")) name.erase(name.size() - 3);  // with the media engines, which only one instance may have
  if (const auto g = name.find("g."); g != std::string::npos && name.ends_with("gb"))
    return fmt::format("{}-{}c", name.substr(0, g), name.substr(g + 2, name.size() - g - 4));
  return name;
}

}  // namespace

std::string profile_family(const std::string& gpu_type, const ParameterSet& parameters) {
  const auto* memory = parameters.find(gpu_type + ".memory");
  if (memory == nullptr) return {};
  return fmt::format("{}-{:.0f}", gpu_type.substr(0, gpu_type.find('-')), memory->value / 0x1.0p30);
}

std::vector<GpuProfile> gpu_profiles(const std::string& family, const ParameterSet& parameters) {
  std::vector<GpuProfile> out;
  for_each_profile(k_time_sliced, parameters,
                   [&](const std::string& of, const std::string& profile, const Parameter& p) {
                     if (of == family) out.push_back(time_sliced(of, profile, p, parameters));
                   });
  for_each_profile(k_mig, parameters, [&](const std::string& of, const std::string& profile, const Parameter& p) {
    if (of == family) out.push_back(mig(of, profile, p, parameters));
  });
  std::sort(out.begin(), out.end(), [](const GpuProfile& a, const GpuProfile& b) {
    return std::tuple(a.is_mig, -a.framebuffer_gb, -a.compute_fraction, a.name) <
           std::tuple(b.is_mig, -b.framebuffer_gb, -b.compute_fraction, b.name);
  });
  return out;
}

std::vector<std::string> profile_families(const ParameterSet& parameters) {
  std::set<std::string> out;
  const auto add = [&](const std::string& family, const std::string&, const Parameter&) { out.insert(family); };
  for_each_profile(k_time_sliced, parameters, add);
  for_each_profile(k_mig, parameters, add);
  return {out.begin(), out.end()};
}

std::optional<GpuProfile> find_gpu_profile(const std::string& family, std::string_view name,
                                           const ParameterSet& parameters) {
  auto wanted = normal_profile_name(name);
  const char series = wanted.empty() ? 'c' : wanted.back();
  const auto find = [&]() -> std::optional<GpuProfile> {
    for (auto& profile : gpu_profiles(family, parameters)) {
      if (profile.name != fmt::format("{}.{}", family, wanted)) continue;
      profile.series = series;
      profile.has_media_engines = name.ends_with("+me");
      return profile;
    }
    return std::nullopt;
  };
  if (name.starts_with(family + ".")) wanted = name.substr(family.size() + 1);
  if (const auto found = find()) return found;
  // Workstation (Q) and application (A) profiles have the sizes and counts of the compute (C) profiles.
  if (!wanted.empty() && (wanted.back() == 'q' || wanted.back() == 'a')) wanted.back() = 'c';
  return find();
}

}  // namespace fabricast::models
