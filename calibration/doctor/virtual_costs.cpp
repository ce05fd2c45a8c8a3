// SPDX-License-Identifier: Apache-2.0
#include "doctor/virtual_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "doctor/changes.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast::doctor {

namespace {

constexpr double k_least_cost = 0.02;  ///< shares that nobody asks about
constexpr double k_least_back = 0.2;   ///< of the cost, for a setting to be named
constexpr double k_half = 0.5;
constexpr std::size_t k_most_named = 4;

/// A setting that hypervisors, hosts or users choose; `cause` is what the doctor calls the opposite as a fault.
struct Setting {
  const char* cause;
  const char* setting;
  const char* title;
  bool (*apply)(Virtualization&);  ///< false: it is so already
};

const std::vector<Setting> k_settings{
    {"translation-shared", "virtualization.translation=cached",
     "devices keep the addresses of their peers translated (ATS with cached translations)",
     [](Virtualization& vm) { return put(vm.translation, PeerTranslation::cached); }},
    {"ats-off", "virtualization.ats=on", "devices translate addresses themselves (ATS)",
     [](Virtualization& vm) { return put(vm.has_ats, true); }},
    {"acs-redirect", "virtualization.acs=direct_translated",
     "PCIe switches pass translated peer requests on instead of up to the root complex",
     [](Virtualization& vm) { return vm.acs == AcsMode::redirect && put(vm.acs, AcsMode::direct_translated); }},
    {"hidden-topology", "virtualization.guest_topology=shown", "the guest sees which GPUs and adapters are near",
     [](Virtualization& vm) {
       return vm.guest_topology == GuestTopology::hidden && put(vm.guest_topology, GuestTopology::shown);
     }},
    {"peer-access-forbidden", "virtualization.allow_p2p=on", "passed-through GPUs reach each other",
     [](Virtualization& vm) { return put(vm.allow_p2p, true); }},
    {"nvswitches-shared", "virtualization.nvswitches=passthrough", "the VM holds the NVSwitches",
     [](Virtualization& vm) { return put(vm.nvswitches, NvswitchMode::passthrough); }},
    {"adapter-emulated", "virtualization.nic=passthrough", "adapters are passed through",
     [](Virtualization& vm) {
       const bool had_names = !vm.nic_by_name.empty();
       vm.nic_by_name.clear();
       return vm.nic != NicMode::sr_iov && (put(vm.nic, NicMode::passthrough) || had_names);
     }},
    {"gpu-shared", "virtualization.gpu=passthrough", "GPUs are passed through whole",
     [](Virtualization& vm) {
       vm.gpu_by_name.clear();
       vm.profile.clear();
       vm.profiles.clear();
       vm.busy_neighbours = 0;
       return put(vm.gpu, GpuMode::passthrough);
     }},
    {"rate-limit", "virtualization.rate_limit", "virtual functions without a limit of their rate",
     [](Virtualization& vm) {
       const bool had = vm.rate_limit.has_value();
       vm.rate_limit.reset();
       return had;
     }},
    {"pinning-off", "virtualization.pinning=on", "every vCPU has a core of its own",
     [](Virtualization& vm) { return put(vm.is_pinned, true); }},
    {"numa-off", "virtualization.numa=on", "memory lies beside the vCPUs",
     [](Virtualization& vm) { return put(vm.is_numa_aligned, true); }},
    {"huge-pages-off", "virtualization.huge_pages=on", "the VM's memory is in huge pages",
     [](Virtualization& vm) { return put(vm.has_huge_pages, true); }},
    {"vhost-off", "virtualization.vhost=on", "a kernel thread moves packets instead of the emulator",
     [](Virtualization& vm) { return put(vm.has_vhost, true); }},
    {"mtu-small", "virtualization.mtu=9000", "jumbo frames",
     [](Virtualization& vm) { return vm.mtu < 9000 && put(vm.mtu, 9000); }},
};

bool apply(const Setting& setting, Case& one) {
  return change_worn(one, [&](Virtualization& vm) { return vm.is_virtual() && setting.apply(vm); });
}

double cost(Duration with, Duration without) { return without.ps > 0 ? with.seconds() / without.seconds() - 1 : 0; }

/// Single settings; where none gets half of the cost back, also pairs that get more back than either.
std::vector<VirtualSetting> what_helps(const Case& base, const VirtualCost& now, Duration without_vms) {
  const auto left_of = [&](const Case& other) -> std::optional<double> {
    const auto times = forecast(other, {now.size});
    if (times.empty()) return std::nullopt;  // not to be had: no VM of this hypervisor has it
    return std::max(0.0, cost(times.front(), without_vms));
  };
  struct Tried {
    const Setting* setting;
    Case one;
    double left;
  };
  std::vector<Tried> singles;
  std::vector<VirtualSetting> out;
  double least = now.share;
  for (const auto& setting : k_settings) {
    Tried tried{&setting, base, 0};
    if (!apply(setting, tried.one)) continue;
    const auto left = left_of(tried.one);
    if (!left) continue;
    tried.left = *left;
    least = std::min(least, *left);
    if (now.share - *left >= k_least_back * now.share)
      out.push_back({{setting.cause}, setting.setting, setting.title, *left});
    singles.push_back(std::move(tried));
  }
  for (std::size_t a = 0; a < singles.size() && least > k_half * now.share; ++a) {
    for (std::size_t b = a + 1; b < singles.size(); ++b) {
      auto both = singles[a].one;
      const auto &one = *singles[a].setting, &other = *singles[b].setting;
      if (!apply(other, both)) continue;
      const auto left = left_of(both);
      if (!left || std::min(singles[a].left, singles[b].left) - *left < k_least_back * now.share) continue;
      if (now.share - *left < k_least_back * now.share) continue;
      out.push_back({{one.cause, other.cause},
                     fmt::format("{} {}", one.setting, other.setting),
                     fmt::format("{}, and {}", one.title, other.title),
                     *left});
    }
  }
  std::ranges::stable_sort(out, {}, &VirtualSetting::share_left);
  if (out.size() > k_most_named) out.resize(k_most_named);
  return out;
}

}  // namespace

bool take_off_vms(Case& one) {
  bool has_changed = false;
  for (auto& group : one.spec.hosts) {
    if (group.host.virtualization && group.host.virtualization->is_virtual()) has_changed = true;
    group.host.virtualization.reset();
  }
  return has_changed;
}

std::optional<VirtualCost> virtual_cost(const std::vector<Patient>& patients,
                                        const std::vector<std::vector<double>>& measured) {
  const auto is_beside_bare = [](const ExpectedRow& row) { return row.is_beside_bare_metal; };
  VirtualCost out;
  out.is_measured = std::ranges::any_of(
      patients, [&](const Patient& one) { return std::ranges::any_of(one.expected, is_beside_bare); });
  const Patient* worst = nullptr;
  Duration without_vms{};
  for (std::size_t p = 0; p < patients.size(); ++p) {
    const auto& one = patients[p];
    auto bare = one.base;
    if (!take_off_vms(bare)) continue;
    const auto with = forecast(one.base, one.sizes), without = forecast(bare, one.sizes);
    if (with.size() != without.size()) continue;
    for (std::size_t i = 0; i < with.size(); ++i) {
      if (measured[p][i] <= 0 || (out.is_measured && !(i < one.expected.size() && is_beside_bare(one.expected[i]))))
        continue;
      if (cost(with[i], without[i]) <= std::max(k_least_cost, out.share)) continue;
      out.share = cost(with[i], without[i]);
      out.size = one.sizes[i];
      worst = &one;
      without_vms = without[i];
    }
  }
  if (worst == nullptr) return std::nullopt;
  out.settings = what_helps(worst->base, out, without_vms);
  return out;
}

}  // namespace fabricast::doctor
