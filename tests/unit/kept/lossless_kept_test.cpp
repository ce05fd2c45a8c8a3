// SPDX-License-Identifier: Apache-2.0
// Settings and headroom of lossless fabrics over ASICs, presets, operating systems and values of the topology's own.
#include "fabricast/check.hpp"
#include "fabricast/lossless.hpp"
#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

std::string settings_text(const LosslessSettings& one) {
  std::string out = fmt::format(
      "    buffer {} shared {} auto {} headroom {} delays {:g} static {} xoff {} xon {} alpha {:g} resume {} reserved "
      "{}\n",
      one.buffer.value, one.shared_buffer.value, one.is_headroom_auto, one.headroom.value, one.headroom_delays,
      one.is_static, one.xoff.value, one.xon.value, one.alpha, one.resume_offset.value, one.reserved.value);
  out += fmt::format("    cell {} mtu {} {} mac {} response {} pipeline {} pause {} ecn {} {} {} {:g} {:g} cnp {}\n",
                     one.cell.value, one.port_mtu.value, one.lossless_mtu.value, one.mac_phy.value,
                     one.peer_response.value, one.pipeline.value, one.pause_time.ps, one.is_ecn_on, one.ecn_min.value,
                     one.ecn_max.value, one.ecn_reference_rate.bytes_per_s, one.ecn_probability, one.cnp_priority);
  out += fmt::format("    lanes {} buffer {} update {} system '{}' weights", one.virtual_lanes, one.vl_buffer.value,
                     one.credit_update.ps, one.operating_system);
  for (const auto& [priority, weight] : one.weights) out += fmt::format(" {}:{:g}", priority, weight);
  out += fmt::format(" marked {} pfc", one.marked ? *one.marked : -1);
  for (const int priority : one.pfc) out += fmt::format(" {}", priority);
  return out + "\n";
}

std::string dcqcn_text(const DcqcnSettings& one) {
  return fmt::format(
      "    dcqcn g {:g} alpha {:g} every {} {} {} {} bytes {} recovery {} clamp {} rates {:g} {:g} {:g}\n", one.g,
      one.initial_alpha, one.alpha_interval.ps, one.decrease_interval.ps, one.increase_interval.ps, one.cnp_interval.ps,
      one.byte_counter.value, one.fast_recovery, one.clamp_target, one.additive_increase.bytes_per_s,
      one.hyper_increase.bytes_per_s, one.minimum_rate.bytes_per_s);
}

}  // namespace

TEST_CASE("lossless fabrics run with the settings and the headroom they had") {
  std::string out;
  for (const auto* name : {"sn2700", "sn3700", "sn4600", "ethernet-25g-tor", "sb7800", "qm8700"}) {
    for (const auto* lossless :
         {"{pfc: [3]}", "{preset: spectrum-1}", "{preset: spectrum-3, operating_system: sonic}", "{preset: trident-2}",
          "{preset: tomahawk}", "{preset: htsim-like}", "{preset: hpcc-ns3-like}",
          "{preset: hpcc-ns3-like, headroom: 50 kB}",
          "{pfc: [2, 5], alpha: 1, pool_share: 0.25, trust: dscp, dscp: 46}",
          "{pfc: [3], xoff: 60 kB, ecn: {min: 100 kB, max: 400 kB, probability: 0.1}}", "{flow_control: drop}"}) {
      const auto path = test::write_file(
          "topology.yaml", fmt::format("schema: fabricast/topology/1\nname: kept\nhosts: [{{name: n, count: 4, type: "
                                       "server-1v100-cx4-100g}}]\nfabric: {{leaf_spine: {{switch: {}, leaf_ports: 4, "
                                       "cable: 5 m, switch_cable: 30 m, lossless: {}}}}}\n",
                                       name, lossless));
      out += fmt::format("{} {}\n", name, lossless);
      const auto loaded = load_topology(path);
      if (!loaded) {
        out += "    " + loaded.error().front().message + "\n";
        continue;
      }
      const auto settings = lossless_settings(loaded->topology, loaded->parameters);
      out += settings_text(settings);
      out += dcqcn_text(dcqcn_settings(loaded->topology, loaded->parameters, "connectx-4-100g"));
      std::istringstream lines(describe_lossless(loaded->topology, loaded->parameters));
      for (std::string line; std::getline(lines, line);) out += "    " + line + "\n";
      for (const auto& finding : check_lossless(loaded->topology, loaded->parameters))
        out += "    finding: " + finding.message.substr(0, finding.message.find('\n')) + "\n";
    }
  }
  test::check_kept("lossless", out);
}
