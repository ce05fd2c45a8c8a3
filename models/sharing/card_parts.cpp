// SPDX-License-Identifier: Apache-2.0
// Whether the vGPUs or MIG instances that VMs hold lie on one card together. MIG: an instance of c compute slices and
// m memory slots starts at a slot the placement table allows, none overlap, compute slices suffice; found by search
// over starts, because sums do not tell ([4g, 4g] has the memory, and one start). Time-sliced: as many of one size as
// the profile says; of several sizes what fits into the memory, each kind at most its number beside others.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "base/parameter_name.hpp"
#include "fabricast/models/virtualization.hpp"

namespace fabricast::models {

namespace {

constexpr double k_rounding = 1.01;  // of profiles' sizes in whole GB

bool place(std::vector<MigKind>& left, std::uint32_t used, int compute, int slots, const ParameterSet& parameters) {
  if (left.empty()) return true;
  const auto one = left.back();
  if (one.compute > compute) return false;
  const auto* starts =
      parameters.find(named<"mig_placement.{}.{}.starts">(slots, fmt::format("{}g{}", one.compute, one.slots)));
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

/// Compute slices are the first number of "a100-40.3-20c".
MigKind kind_of(const GpuProfile& profile, int slots) {
  const auto dot = profile.name.find('.');
  return {std::atoi(profile.name.c_str() + dot + 1), static_cast<int>(std::lround(profile.memory_fraction * slots))};
}

std::vector<CardFault> mig_faults(const std::vector<GpuProfile>& parts, const ParameterSet& parameters) {
  std::vector<CardFault> out;
  if (std::ranges::count(parts, true, &GpuProfile::has_media_engines) > 1) out.push_back({CardFault::media_engines, 0});
  const auto* memory = parameters.find(named<"mig.{}.memory_slices">(parts.front().family));
  const int slots = memory == nullptr ? 8 : static_cast<int>(memory->value);
  std::vector<MigKind> instances;
  for (const auto& part : parts) instances.push_back(kind_of(part, slots));
  if (!can_place(instances, slots, parameters)) out.push_back({CardFault::placement, 0});
  return out;
}

std::vector<CardFault> unlike_size_faults(const std::vector<GpuProfile>& parts, double memory_gb,
                                          const CardRules& rules) {
  if (!rules.may_mix_sizes) return {{CardFault::unlike_sizes, 0}};
  std::vector<CardFault> out;
  if (rules.is_fixed_share) out.push_back({CardFault::fixed_share, 0});
  double sum = 0;
  for (const auto& part : parts) sum += part.framebuffer_gb;
  if (sum > k_rounding * memory_gb) out.push_back({CardFault::framebuffer, 0});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto same = std::ranges::count(parts, parts[i].name, &GpuProfile::name);
    if (parts[i].max_instances_mixed == 0 || same <= parts[i].max_instances_mixed) continue;
    out.push_back({CardFault::too_many_beside_others, i});
    break;
  }
  return out;
}

}  // namespace

bool can_place(const std::vector<MigKind>& instances, int slots, const ParameterSet& parameters) {
  auto left = instances;
  std::ranges::sort(left, {}, [](const MigKind& one) { return std::pair(one.slots, one.compute); });
  const auto* compute = parameters.find(named<"mig_placement.{}.compute">(slots));
  return compute != nullptr && place(left, 0, static_cast<int>(compute->value), slots, parameters);
}

std::vector<CardFault> card_faults(const std::vector<GpuProfile>& parts, double memory_gb, const CardRules& rules,
                                   const ParameterSet& parameters) {
  if (parts.empty()) return {};
  const auto mig = std::ranges::count(parts, true, &GpuProfile::is_mig);
  if (mig > 0 && mig < static_cast<std::ptrdiff_t>(parts.size())) return {{CardFault::mig_and_time_sliced, 0}};
  if (mig > 0) return mig_faults(parts, parameters);
  std::set<double> sizes;
  std::set<char> series;
  for (const auto& part : parts) {
    sizes.insert(part.framebuffer_gb);
    series.insert(part.series);
  }
  if (sizes.size() > 1) return unlike_size_faults(parts, memory_gb, rules);
  std::vector<CardFault> out;
  if (static_cast<int>(parts.size()) > parts.front().max_instances) out.push_back({CardFault::too_many, 0});
  if (series.size() > 1 && !rules.may_mix_series) out.push_back({CardFault::unlike_series, 0});
  return out;
}

}  // namespace fabricast::models
