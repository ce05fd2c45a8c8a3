// SPDX-License-Identifier: Apache-2.0
// Keys under `lossless:` that nothing would read with the other ones given: each is refused with the reason, so that
// every accepted setting acts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/lossless_reader.hpp"

namespace fabricast::config {

namespace {

/// A key and what is wrong with it: under a flow control, or beside another key.
struct Idle {
  const char* key;
  const char* fix;
};

constexpr const char* k_for_pfc = "it belongs to `flow_control: pfc`";
constexpr const char* k_no_pfc = "a full buffer drops, no priority is paused: leave it out, or use `flow_control: pfc`";
constexpr const char* k_for_credits = "lanes belong to `flow_control: credits`";
constexpr const char* k_no_control = "InfiniBand's congestion control is not modelled: leave it out";

constexpr std::array k_idle_with_pfc{Idle{"virtual_lanes", k_for_credits}, Idle{"vl_buffer", k_for_credits},
                                     Idle{"credit_update", k_for_credits}};
constexpr std::array k_idle_with_credits{Idle{"preset", "the ASICs of the catalogue are Ethernet's: leave it out"},
                                         Idle{"operating_system", k_for_pfc},
                                         Idle{"trust", "packets carry a service level: leave it out"},
                                         Idle{"pfc", k_for_pfc},
                                         Idle{"marks", "packets carry a service level: leave it out"},
                                         Idle{"dscp_to_priority", k_for_pfc},
                                         Idle{"ports", k_for_pfc},
                                         Idle{"headroom", k_for_pfc},
                                         Idle{"xoff", k_for_pfc},
                                         Idle{"xon", k_for_pfc},
                                         Idle{"resume_offset", k_for_pfc},
                                         Idle{"alpha", k_for_pfc},
                                         Idle{"reserved", k_for_pfc},
                                         Idle{"shared_buffer", "lanes have memory of their own, `vl_buffer`"},
                                         Idle{"pool_share", "lanes have memory of their own, `vl_buffer`"},
                                         Idle{"cell", "credits count blocks of 64 B"},
                                         Idle{"port_mtu", k_for_pfc},
                                         Idle{"lossless_mtu", k_for_pfc},
                                         Idle{"pause_time", k_for_pfc},
                                         Idle{"ecn", k_no_control},
                                         Idle{"cnp_priority", k_no_control},
                                         Idle{"dcqcn", k_no_control}};
constexpr std::array k_idle_with_drop{Idle{"virtual_lanes", k_for_credits},
                                      Idle{"vl_buffer", k_for_credits},
                                      Idle{"credit_update", k_for_credits},
                                      Idle{"marks", k_no_pfc},
                                      Idle{"dscp_to_priority", k_no_pfc},
                                      Idle{"ports", k_no_pfc},
                                      Idle{"operating_system", k_no_pfc},
                                      Idle{"trust", k_no_pfc},
                                      Idle{"pfc", k_no_pfc},
                                      Idle{"headroom", k_no_pfc},
                                      Idle{"xoff", k_no_pfc},
                                      Idle{"xon", k_no_pfc},
                                      Idle{"resume_offset", k_no_pfc},
                                      Idle{"alpha", k_no_pfc},
                                      Idle{"reserved", k_no_pfc},
                                      Idle{"port_mtu", k_no_pfc},
                                      Idle{"lossless_mtu", k_no_pfc},
                                      Idle{"pause_time", k_no_pfc}};

class Faults {
 public:
  Faults(const LosslessSpec& spec, FlowControl control) : spec_(spec), control_(control) {}

  Diagnostics run(bool is_ecn_off, const std::vector<std::string>& systems) {
    switch (control_) {
      case FlowControl::pfc:
        refuse_all(k_idle_with_pfc);
        break;
      case FlowControl::credits:
        refuse_all(k_idle_with_credits);
        if (spec_.virtual_lanes.value_or(1) < 2)
          refuse("weights", "weights share a port among lanes, and there is one", "raise `virtual_lanes`");
        break;
      case FlowControl::drop:
        refuse_all(k_idle_with_drop);
        break;
    }
    if (control_ != FlowControl::credits) beside_each_other(is_ecn_off);
    if (control_ == FlowControl::pfc) check_system(systems);
    return std::move(found_);
  }

 private:
  template <std::size_t N>
  void refuse_all(const std::array<Idle, N>& keys) {
    for (const auto& [key, fix] : keys)
      refuse(key, fmt::format("'{}' does nothing with `flow_control: {}`", key, to_string(control_)), fix);
  }

  void refuse(const char* key, std::string message, std::string fix) {
    if (!spec_.gives(key)) return;
    found_.push_back(make_error_at(spec_.locations.at(key), std::move(message), std::move(fix)));
  }

  void beside_each_other(bool is_ecn_off) {
    if (is_ecn_off)
      refuse("dcqcn", "'dcqcn' does nothing with `ecn: off`: senders hear of congestion by marks alone",
             "leave `ecn` out, or `dcqcn`");
    if (spec_.shared_buffer)
      refuse("pool_share", "'pool_share' and 'shared_buffer' both size the lossless pool", "leave one out");
    if (spec_.xoff)
      refuse("resume_offset", "'resume_offset' belongs to dynamic thresholds, 'xoff' is a static one",
             "a static threshold resumes at `xon`");
    if (spec_.headroom && spec_.headroom->value > 0)
      refuse("lossless_mtu", "'lossless_mtu' is for the headroom formula, and 'headroom' is given",
             "use `headroom: auto`, or leave `lossless_mtu` out");
    if (spec_.preset == "htsim-like" || spec_.preset == "hpcc-ns3-like")
      refuse("pause_time", fmt::format("the pauses of '{}' last until they are taken back", spec_.preset),
             "leave `pause_time` out");
  }

  /// `systems`: those that the switch's ASIC has a value of alpha for.
  void check_system(const std::vector<std::string>& systems) {
    if (spec_.alpha || spec_.xoff)
      refuse("operating_system",
             fmt::format("'operating_system' decides alpha, and '{}' is given", spec_.alpha ? "alpha" : "xoff"),
             "leave one out");
    for (const auto& system : systems)
      if (system == spec_.operating_system) return;
    refuse("operating_system",
           fmt::format("the thresholds of these switches under {} are not known", spec_.operating_system),
           systems.empty() ? "leave it out, or give `alpha`" : fmt::format("use {}, or give `alpha`", systems.front()));
  }

  const LosslessSpec& spec_;
  FlowControl control_;
  Diagnostics found_;
};

/// Operating systems that the first of `owners` with a threshold has one for.
std::vector<std::string> systems_of(const std::vector<std::string>& owners, const ParameterSet& parameters) {
  std::vector<std::string> systems;
  for (const auto& owner : owners) {
    if (owner.empty()) continue;
    for (const char* system : {"onyx", "sonic"})
      if (parameters.find(fmt::format("{}.alpha_{}", owner, system)) != nullptr) systems.emplace_back(system);
    if (!systems.empty() || parameters.find(owner + ".alpha") != nullptr || parameters.find(owner + ".xoff") != nullptr)
      break;
  }
  return systems;
}

}  // namespace

Diagnostics lossless_faults(const FabricSpec& fabric, bool is_infiniband, const ParameterSet& parameters) {
  if (!fabric.lossless) return {};
  const auto& spec = *fabric.lossless;
  const auto control = spec.flow_control.value_or(is_infiniband ? FlowControl::credits : FlowControl::pfc);
  std::vector<std::string> systems{"onyx", "sonic"};
  for (const auto& type : switch_types(fabric)) {
    const auto own = systems_of({spec.preset, type, asic_of(fabric, type)}, parameters);
    std::erase_if(systems, [&](const auto& one) { return std::ranges::find(own, one) == own.end(); });
  }
  return Faults(spec, control).run(spec.ecn.has_value() && !*spec.ecn, systems);
}

}  // namespace fabricast::config
