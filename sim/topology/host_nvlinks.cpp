// SPDX-License-Identifier: Apache-2.0
// NVLinks of a host: between GPUs, from GPUs to NVSwitches, between NVSwitches. `gpus` stands for every GPU.
//
// Payload rate = links * rate of one link * the share of it that large copies reach (nvlink_efficiency).
#include <fmt/format.h>

#include <algorithm>

#include "topology/host_shape.hpp"

namespace fabricast::topology {

namespace {

constexpr int k_max_connections = 1'000'000;  // of the lists written out; 1,024 GPUs all to all are 523,776

class NvlinkBuilder {
 public:
  NvlinkBuilder(HostShape& shape, const std::map<std::string, int>& made, const SourceLocation& where,
                DeviceValues& values)
      : shape_(shape), made_(made), where_(where), values_(values) {}

  void add(const NvlinkSpec& spec) {
    if (num_connections_ > k_max_connections) return;
    if (spec.links < 1) {
      fault(spec.location, fmt::format("{} NVLinks between '{}' and '{}'", spec.links, spec.from, spec.to),
            "give 1 or more `links`");
      return;
    }
    const bool is_mesh = spec.from == "gpus" && spec.to == "gpus";
    for (const auto& a : names_of(spec.from)) {
      for (const auto& b : names_of(spec.to)) {
        if (is_mesh && made_.at(a) >= made_.at(b)) continue;  // every pair once
        if (++num_connections_ > k_max_connections) {
          fault(spec.location, fmt::format("more than {} NVLinks in a host, from here on", k_max_connections),
                "list fewer `nvlinks`");
          return;
        }
        add_nvlink(spec, a, b);
      }
    }
  }

  /// No GPU has more NVLinks in use than it has. One NVSwitch may stand for all of a host: its ports are not counted.
  void check_counts() {
    for (std::size_t d = 0; d < shape_.devices.size(); ++d) {
      const auto& device = shape_.devices[d];
      if (device.kind != DeviceKind::gpu) continue;
      const auto most = values_.find(device.type, "nvlink_links");
      int used = 0;
      for (const int l : shape_.links_from[d]) {
        const auto& link = shape_.links[static_cast<std::size_t>(l)];
        if (link.kind == LinkKind::nvlink) used += link.lanes;
      }
      if (!most || used <= *most) continue;
      const auto last = std::find_if(shape_.spec.nvlinks.rbegin(), shape_.spec.nvlinks.rend(), [&](const auto& one) {
        return one.from == device.name || one.to == device.name || one.from == "gpus" || one.to == "gpus";
      });
      fault(last == shape_.spec.nvlinks.rend() ? where_ : last->location,
            fmt::format("{} NVLinks at '{}', a {} has {}", used, device.name, device.type, *most),
            "give fewer `links`");
      return;
    }
  }

 private:
  void fault(const SourceLocation& where, std::string message, std::string hint) {
    values_.error(where.line > 0 ? where : where_, std::move(message), std::move(hint));
  }

  [[nodiscard]] DeviceKind kind_of(int device) const { return shape_.devices[static_cast<std::size_t>(device)].kind; }

  [[nodiscard]] std::vector<std::string> names_of(const std::string& end) const {
    if (end != "gpus") return {end};
    std::vector<std::string> names;
    for (const int gpu : shape_.by_kind[static_cast<std::size_t>(DeviceKind::gpu)])
      names.push_back(shape_.devices[static_cast<std::size_t>(gpu)].name);
    return names;
  }

  bool is_nvlink_end(const NvlinkSpec& spec, const std::string& name) {
    const auto it = made_.find(name);
    if (it != made_.end() && it->second >= 0 &&
        (kind_of(it->second) == DeviceKind::gpu || kind_of(it->second) == DeviceKind::nvswitch))
      return true;
    const bool is_declared = std::ranges::any_of(shape_.spec.devices, [&](const auto& d) {
      return d.name == name && (d.kind == DeviceKind::gpu || d.kind == DeviceKind::nvswitch);
    });
    if (is_declared) return false;  // at fault itself, and reported there
    std::vector<std::string> names{"gpus"};
    for (const auto& d : shape_.spec.devices) {
      if (d.kind == DeviceKind::gpu || d.kind == DeviceKind::nvswitch) names.push_back(d.name);
    }
    fault(spec.location, fmt::format("NVLink ends at '{}', which is no GPU or NVSwitch of the host", name),
          did_you_mean(name, names));
    return false;
  }

  void add_nvlink(const NvlinkSpec& spec, const std::string& a, const std::string& b) {
    const bool is_first = is_nvlink_end(spec, a);
    if (!is_nvlink_end(spec, b) || !is_first) return;
    if (a == b) {
      fault(spec.location, fmt::format("NVLink from '{}' to itself", a), "give two ends");
      return;
    }
    const int x = made_.at(a);
    const int y = made_.at(b);
    const auto link = nvlink(x, y, spec);
    if (!link) return;
    for (const int l : shape_.links_from[static_cast<std::size_t>(x)]) {
      auto& known = shape_.links[static_cast<std::size_t>(l)];
      if (known.kind != LinkKind::nvlink || known.to.value != y) continue;
      for (auto* one :
           {&known, &shape_.links[static_cast<std::size_t>(l ^ 1)]}) {  // listed twice: more links in parallel
        one->lanes += link->lanes;
        one->bandwidth = one->bandwidth + link->bandwidth;
      }
      return;
    }
    shape_.connect(x, y, *link);
  }

  /// The slower GPU decides; between two NVSwitches the slower port.
  std::optional<Link> nvlink(int x, int y, const NvlinkSpec& spec) {
    std::optional<Link> slowest;
    for (const int end : {x, y}) {
      const auto& device = shape_.devices[static_cast<std::size_t>(end)];
      const bool is_gpu = device.kind == DeviceKind::gpu;
      if (!is_gpu && kind_of(end == x ? y : x) == DeviceKind::gpu) continue;
      const std::string field = is_gpu ? "nvlink_link_bandwidth" : "port_bandwidth";
      const auto rate = values_.find(device.type, field);
      if (!rate || *rate <= 0) {
        fault(spec.location, fmt::format("'{}' is a {}, which has no NVLink", device.name, device.type),
              fmt::format("remove the NVLink, take an SXM type, or give '{}' a '{}'", device.type, field));
        return std::nullopt;
      }
      const double bandwidth = *rate * spec.links * values_.value_or(device.type, "nvlink_efficiency", 1);
      if (slowest && slowest->bandwidth.bytes_per_s <= bandwidth) continue;
      slowest = Link{{},
                     LinkKind::nvlink,
                     {},
                     {},
                     {bandwidth},
                     values_.duration_or(device.type, "nvlink_latency", {0}),
                     spec.links,
                     0,
                     device.type + "." + field};
    }
    return slowest;
  }

  HostShape& shape_;
  const std::map<std::string, int>& made_;
  const SourceLocation& where_;
  DeviceValues& values_;
  int num_connections_ = 0;
};

}  // namespace

void connect_nvlinks(HostShape& shape, const std::map<std::string, int>& made, const SourceLocation& where,
                     DeviceValues& values) {
  NvlinkBuilder builder(shape, made, where, values);
  for (const auto& nvlink : shape.spec.nvlinks) builder.add(nvlink);
  builder.check_counts();
}

}  // namespace fabricast::topology
