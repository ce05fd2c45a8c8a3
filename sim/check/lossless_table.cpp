// SPDX-License-Identifier: Apache-2.0
// The table `check` prints of a lossless fabric: settings in use, headroom per port, deadlock.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "check/lossless_traffic.hpp"
#include "fabricast/check.hpp"
#include "fabricast/lossless.hpp"

namespace fabricast {

namespace {

std::string threshold_line(const LosslessSettings& settings) {
  if (settings.is_static)
    return fmt::format("static thresholds: XOFF {} B, XON {} B", settings.xoff.value, settings.xon.value);
  return fmt::format("dynamic threshold: alpha {:g}{} x free memory of {}, resume {} B below", settings.alpha,
                     settings.operating_system.empty() ? "" : fmt::format(" ({})", settings.operating_system),
                     to_string(settings.shared_buffer), settings.resume_offset.value);
}

/// `of`: which switches, where they differ.
std::string describe_control(const LosslessSettings& settings, const std::string& of) {
  std::string out =
      fmt::format("  {}flow control: {}{}\n", of.empty() ? "" : of + ": ", to_string(settings.flow_control),
                  settings.preset.empty() ? "" : fmt::format(", values of {}", settings.preset));
  switch (settings.flow_control) {
    case FlowControl::pfc:
      out += fmt::format("  lossless priorities: {}; {}\n", fmt::join(settings.pfc, ", "), threshold_line(settings));
      break;
    case FlowControl::credits:
      out += fmt::format("  virtual lanes: {}, {} B each per port\n", settings.virtual_lanes, settings.vl_buffer.value);
      break;
    case FlowControl::drop:
      out += fmt::format("  no lossless priority: a buffer of {} drops when it is full\n",
                         to_string(settings.shared_buffer));
      break;
  }
  if (settings.is_ecn_on)
    out += fmt::format("  ECN marks from {} B, all from {} B; CNPs in priority {}\n", settings.ecn_min.value,
                       settings.ecn_max.value, settings.cnp_priority);
  return out;
}

std::string describe_ports(const LosslessSettings& settings, const std::vector<PortHeadroom>& ports) {
  if (ports.empty()) return "";
  std::string out =
      fmt::format("  headroom per port and lossless priority ({}), bytes:\n",
                  settings.headroom_delays > 0 ? fmt::format("{:g} x rate x delay", settings.headroom_delays)
                  : settings.is_headroom_auto  ? "derived by the vendor's formula"
                                               : "given");
  out += fmt::format("  {:>10} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9}  {}\n", "rate", "cable", "ports", "in use",
                     "xoff", "xon", "size", "needed", "example");
  for (const auto& port : ports)
    out +=
        fmt::format("  {:>10} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9}  {}\n", check::gigabits(port.rate),
                    fmt::format("{:g} m", port.cable_m), port.num_ports, port.configured.value, port.vendor.xoff.value,
                    port.vendor.xon.value, port.vendor.size.value, port.needed.value, port.example);
  return out;
}

std::string deadlock_line(const std::string& routing, const DeadlockReport& report) {
  if (!report.is_analysed) return "";  // a warning says so
  if (!report.reason.empty()) return fmt::format("  deadlock: none; {}\n", report.reason);
  if (report.cycle.empty())
    return fmt::format("  deadlock with {}: none; {} buffers and {} dependencies without a cycle\n", routing,
                       report.num_buffers, report.num_dependencies);
  return fmt::format("  deadlock with {}: possible; {} buffers can wait for each other in a circle\n", routing,
                     report.cycle.size());
}

/// Of the scenario's routing, or of all.
std::string describe_deadlock(const Topology& topology, const LosslessSettings& settings, const Scenario* scenario) {
  if (settings.flow_control == FlowControl::drop) return "  deadlock: none; full buffers drop\n";
  const auto priorities = check::priorities_that_travel(topology, settings, scenario);
  const auto report = [&](bool is_per_packet) {
    return find_deadlock(topology, settings, priorities, lanes_on_routes(topology, settings, is_per_packet));
  };
  if (scenario != nullptr && !scenario->workloads.empty())
    return deadlock_line(
        packet_routing(topology.spec().fabric, scenario->workloads.front().transport.routing) + " routing",
        report(check::chooses_per_packet(topology.spec().fabric, *scenario)));
  const auto hashed = report(false);
  if (!has_lane_rule(topology, settings)) return deadlock_line("any routing", hashed);
  return deadlock_line("ecmp", hashed) + deadlock_line("spray or adaptive routing", report(true));
}

}  // namespace

std::string describe_lossless(const Topology& topology, const ParameterSet& parameters, const Scenario* scenario) {
  if (!topology.spec().fabric.lossless) return "";
  const auto settings = lossless_settings(topology, parameters);
  const auto types = switch_types(topology.spec().fabric);
  std::string control;
  for (const auto& type : types)
    control += describe_control(lossless_settings(topology, parameters, type), types.size() > 1 ? type : "");
  return control + describe_ports(settings, port_headrooms(topology, parameters)) +
         describe_deadlock(topology, settings, scenario);
}

}  // namespace fabricast
