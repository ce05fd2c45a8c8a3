// SPDX-License-Identifier: Apache-2.0
#include "sweep/short_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace fabricast::sweep {

namespace {

bool needs_devices(const std::string& path) { return path == "gpu.type" || path == "hca.type" || path == "hca.count"; }
bool needs_groups(const std::string& path) { return path == "hosts" || needs_devices(path); }

class Expander {
 public:
  Expander(const SweepPlan& plan, Diagnostics& faults) : plan_(plan), faults_(faults) {}

  std::vector<Setting> expand(const std::vector<SweepSetting>& settings) {
    std::vector<Setting> out;
    for (const auto& one : settings) {
      if (needs_groups(one.path)) continue;
      const bool is_fabric = one.path == "fabric" || one.path.starts_with("fabric.");
      out.push_back({is_fabric ? "topology." + one.path : one.path, one.value});
    }
    for (const auto& one : settings) {
      if (one.path == "hosts") add_count(one.value, out);
    }
    std::string gpu;
    std::string hca;
    std::string count;
    for (const auto& one : settings) {
      if (one.path == "gpu.type") gpu = one.value;
      if (one.path == "hca.type") hca = one.value;
      if (one.path == "hca.count") count = one.value;
    }
    if (!gpu.empty() || !hca.empty() || !count.empty()) add_devices(gpu, hca, count, out);
    return out;
  }

 private:
  void fault(std::string message, std::string hint) {
    faults_.push_back(make_error(std::move(message), std::move(hint)));
    faults_.back().location.file = plan_.file;
  }

  const std::vector<HostGroupSpec>* groups(const std::vector<Setting>& settings) {
    if (!loaded_) {
      auto loaded = load_scenario(plan_.scenario_file, plan_.parameter_files, settings);
      if (!loaded) {
        faults_.insert(faults_.end(), loaded.error().begin(), loaded.error().end());
        return nullptr;
      }
      loaded_ = loaded->topology.spec().hosts;
    }
    return &*loaded_;
  }

  void add_count(const std::string& value, std::vector<Setting>& out) {
    const auto* all = groups(out);
    if (all == nullptr) return;
    if (all->size() != 1)
      return fault(fmt::format("'hosts' of a topology with {} host groups", all->size()),
                   "vary `topology.hosts.NAME.count`");
    out.push_back({fmt::format("topology.hosts.{}.count", all->front().name), value});
  }

  /// One list of changed devices and one of removed ones per host group.
  void add_devices(const std::string& gpu, const std::string& hca, const std::string& count,
                   std::vector<Setting>& out) {
    const auto* all = groups(out);
    if (all == nullptr) return;
    for (const auto& group : *all) {
      std::vector<std::string> adapters;
      for (const auto& device : group.host.devices) {
        if (device.kind == DeviceKind::hca) adapters.push_back(device.name);
      }
      const auto removed = count.empty() ? std::vector<std::string>{} : removed_of(adapters, count, group.name);
      std::vector<std::string> changed;
      for (const auto& device : group.host.devices) {
        if (std::ranges::find(removed, device.name) != removed.end()) continue;
        const auto& type = device.kind == DeviceKind::gpu ? gpu : hca;
        const bool has_type = device.kind == DeviceKind::gpu || device.kind == DeviceKind::hca;
        if (has_type) changed.push_back(described(device, type.empty() ? device.type : type));
      }
      const auto where = "topology.hosts." + group.name;
      const bool has_types = !gpu.empty() || !hca.empty();
      if (has_types && !changed.empty())
        out.push_back({where + ".devices", fmt::format("[{}]", fmt::join(changed, ", "))});
      if (!removed.empty()) out.push_back({where + ".remove", fmt::format("[{}]", fmt::join(removed, ", "))});
    }
  }

  /// The whole device, so that a list in the topology file may be replaced.
  static std::string described(const DeviceSpec& device, const std::string& type) {
    auto out = fmt::format("{{name: {}, type: {}", device.name, type);
    if (!device.below.empty()) out += ", below: " + device.below;
    if (device.pcie.generation > 0) out += fmt::format(", pcie: gen{} x{}", device.pcie.generation, device.pcie.width);
    return out + "}";
  }

  /// Adapters that go, so that those which stay are spread evenly over the host's places.
  std::vector<std::string> removed_of(const std::vector<std::string>& adapters, const std::string& count,
                                      const std::string& group) {
    std::size_t wanted = 0;
    const auto read = std::from_chars(count.data(), count.data() + count.size(), wanted);
    if (read.ec != std::errc{} || read.ptr != count.data() + count.size() || wanted > adapters.size()) {
      fault(fmt::format("'hca.count' is '{}', hosts of group '{}' have {}", count, group, adapters.size()),
            fmt::format("write 0 to {}; more need places of their own: `topology.hosts.{}.devices`", adapters.size(),
                        group));
      return {};
    }
    std::vector<bool> stays(adapters.size(), false);
    for (std::size_t i = 0; i < wanted; ++i) stays[i * adapters.size() / wanted] = true;
    std::vector<std::string> out;
    for (std::size_t i = 0; i < adapters.size(); ++i) {
      if (!stays[i]) out.push_back(adapters[i]);
    }
    return out;
  }

  const SweepPlan& plan_;
  Diagnostics& faults_;
  std::optional<std::vector<HostGroupSpec>> loaded_;
};

}  // namespace

std::vector<Setting> expanded(const SweepPlan& plan, const std::vector<SweepSetting>& settings, Diagnostics& faults) {
  return Expander(plan, faults).expand(settings);
}

}  // namespace fabricast::sweep
