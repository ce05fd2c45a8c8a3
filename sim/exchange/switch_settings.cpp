// SPDX-License-Identifier: Apache-2.0
// Lossless settings as lines of an Onyx configuration; `fabricast import` reads the same lines back.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fabricast/export.hpp"

namespace fabricast {

namespace {

constexpr const char* k_guide = "NVIDIA Onyx manual, RoCE";
constexpr std::int64_t k_kilobyte = 1000;

class OnyxLines {
 public:
  OnyxLines(const LosslessSpec& spec, int ports) : spec_(spec), ports_(fmt::format("ethernet 1/1-1/{}", ports)) {}

  std::string text() {
    const auto pfc = spec_.pfc.empty() ? std::vector{3} : spec_.pfc;
    add("traffic pool roce type lossless");
    add(fmt::format("traffic pool roce memory percent {:.2f}", 100 * spec_.pool_share.value_or(0.5)));
    for (const int priority : pfc) add(fmt::format("traffic pool roce map switch-priority {}", priority));
    add(fmt::format("interface {} qos trust {}", ports_, spec_.trust == "pcp" ? "L2" : "L3"));
    for (const auto& [dscp, priority] : spec_.dscp_priorities)
      add(fmt::format("qos map dscp {} to switch-priority {}", dscp, priority));
    if (spec_.ecn.value_or(true)) {
      for (const int priority : pfc)
        add(fmt::format("interface {} traffic-class {} congestion-control ecn minimum-absolute {} maximum-absolute {}",
                        ports_, priority, spec_.ecn_min.value_or(Bytes{150 * k_kilobyte}).value / k_kilobyte,
                        spec_.ecn_max.value_or(Bytes{1500 * k_kilobyte}).value / k_kilobyte));
    }
    auto weights = spec_.weights;
    weights.try_emplace(spec_.cnp_priority, 0);
    for (const auto& [priority, weight] : weights)
      add(weight == 0 ? fmt::format("interface {} traffic-class {} dcb ets strict", ports_, priority)
                      : fmt::format("interface {} traffic-class {} dcb ets wrr {:.0f}", ports_, priority, weight));
    add("dcb priority-flow-control enable force");
    for (const int priority : pfc) add(fmt::format("dcb priority-flow-control priority {} enable", priority));
    add(fmt::format("interface {} dcb priority-flow-control mode on force", ports_));
    return "## lossless settings for Onyx; source of every line: " + std::string(k_guide) + "\n" + lines_;
  }

 private:
  void add(const std::string& line) { lines_ += line + "\n"; }

  const LosslessSpec& spec_;
  std::string ports_, lines_;
};

}  // namespace

Result<std::string> onyx_configuration(const Topology& topology) {
  const auto& lossless = topology.spec().fabric.lossless;
  const auto refuse = [](std::string what, std::string fix) {
    return tl::unexpected(Diagnostics{make_error(std::move(what), std::move(fix))});
  };
  if (!lossless)
    return refuse(fmt::format("'{}' says nothing of `lossless`", topology.name()), "write `lossless:` below `fabric`");
  if (topology.is_infiniband() || lossless->flow_control.value_or(FlowControl::pfc) != FlowControl::pfc)
    return refuse("Onyx lines are of PFC, the fabric has none", "take Ethernet switches with `flow_control: pfc`");
  std::map<DeviceId, int> used;
  int most = 1;
  for (int l = topology.first_network_link(); l < topology.num_links(); ++l)
    most = std::max(most, ++used[topology.link(LinkId{l}).from]);
  return OnyxLines(*lossless, most).text();
}

}  // namespace fabricast
