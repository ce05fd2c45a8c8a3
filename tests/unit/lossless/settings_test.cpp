// SPDX-License-Identifier: Apache-2.0
// Which value of a lossless fabric counts: topology, preset, switch, ASIC, shipped default.
#include "fabricast/lossless.hpp"
#include "tests/support/clusters.hpp"

#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

LoadedTopology with(const std::string& lossless, const std::string& switch_type = "sn2700") {
  return test::topology(
      "schema: fabricast/topology/1\nname: t\nhosts: [{name: n, count: 4, type: server-1v100-cx4-100g}]\n"
      "fabric:\n  single_switch: {switch: " +
      switch_type + ", lossless: " + lossless + "}\n");
}

LosslessSettings settings(const std::string& lossless, const std::string& switch_type = "sn2700") {
  const auto loaded = with(lossless, switch_type);
  return lossless_settings(loaded.topology, loaded.parameters);
}

}  // namespace

TEST_CASE("a switch brings its ASIC's values") {
  const auto made = settings("{pfc: [3]}");
  CHECK(made.preset == "spectrum-1");
  CHECK(made.cell == 96_B);
  CHECK(made.alpha == 8);
  CHECK(made.buffer == 16_MiB);
  CHECK(made.shared_buffer == 8_MiB);
  CHECK(made.is_headroom_auto);
  CHECK_FALSE(made.is_static);
  CHECK(made.ecn_min == Bytes{150'000});
}

TEST_CASE("a preset named in the topology counts more than the switch, a value of the topology more than the preset") {
  const auto preset = settings("{preset: htsim-like}");
  CHECK(preset.is_static);
  CHECK(preset.xoff == Bytes{60'000});
  CHECK(preset.xon == Bytes{48'000});
  CHECK_FALSE(preset.is_headroom_auto);
  CHECK(preset.buffer == Bytes{256'000'000});
  const auto own = settings("{preset: htsim-like, alpha: 2, headroom: auto, cell: 64 B}");
  CHECK_FALSE(own.is_static);
  CHECK(own.alpha == 2);
  CHECK(own.is_headroom_auto);
  CHECK(own.cell == 64_B);
}

TEST_CASE("every shipped preset loads, and dynamic ones have a threshold") {
  for (const auto* preset : {"spectrum-1", "spectrum-2", "spectrum-3", "spectrum-4", "trident-2", "tomahawk",
                             "htsim-like", "hpcc-ns3-like"}) {
    CAPTURE(preset);
    const auto made = settings(std::string("{preset: ") + preset + "}");
    CHECK(made.preset == preset);
    CHECK(made.buffer > Bytes{0});
    CHECK((made.is_static ? made.xoff.value > 0 : made.alpha > 0));
    CHECK(made.ecn_max >= made.ecn_min);
  }
}

TEST_CASE("notifications go first unless the topology gives their priority a share") {
  CHECK(settings("{pfc: [3]}").weights.at(6) == 0);
  CHECK(settings("{weights: {6: 10, 3: 90}}").weights.at(6) == 10);
  CHECK(settings("{weights: {6: strict, 3: 90}}").weights.at(6) == 0);
}

TEST_CASE("DCQCN: the HCA's shipped values, the preset's, the topology's") {
  const auto shipped = with("{pfc: [3]}");
  CHECK(dcqcn_settings(shipped.topology, shipped.parameters, "connectx-4-100g").increase_interval == 300_us);
  const auto preset = with("{preset: hpcc-ns3-like}");
  const auto made = dcqcn_settings(preset.topology, preset.parameters, "connectx-4-100g");
  CHECK(made.increase_interval == 900_us);
  CHECK(made.g == test::approx(1.0 / 256));
  CHECK(made.additive_increase.bytes_per_s == test::approx(50e6 / 8));
  const auto own = with("{preset: hpcc-ns3-like, dcqcn: {increase_interval: 300 us}}");
  CHECK(dcqcn_settings(own.topology, own.parameters, "connectx-4-100g").increase_interval == 300_us);
}

TEST_CASE("InfiniBand switches use credits and are lossless without a word, Ethernet must say so") {
  CHECK(settings("{virtual_lanes: 2}", "sb7800").flow_control == FlowControl::credits);
  CHECK(settings("{virtual_lanes: 2}", "sb7800").virtual_lanes == 2);
  const auto plain = [](const char* type) {
    return test::topology(
        std::string("schema: fabricast/topology/1\nname: t\nhosts: [{name: n, count: 2, type: server-1v100-cx4-100g}]\n"
                    "fabric: {single_switch: {switch: ") +
        type + "}}\n");
  };
  CHECK(is_lossless(plain("sb7800").topology));
  CHECK_FALSE(is_lossless(plain("sn2700").topology));
  CHECK(is_lossless(with("{pfc: [3]}").topology));
  CHECK_FALSE(is_lossless(with("{flow_control: drop}").topology));
}

TEST_CASE("contradictions in a lossless block are reported together, with their place") {
  const auto path = test::write_file(
      "bad.yaml",
      "schema: fabricast/topology/1\nname: t\nhosts: [{name: n, count: 2, type: server-1v100-cx4-100g}]\nfabric:\n"
      "  single_switch:\n    switch: sn2700\n    lossless:\n      pfc: [3, 3]\n      xoff: 40 kB\n      xon: 50 kB\n"
      "      alpha: 1\n      ecn: {min: 2 MB, max: 1 MB}\n      weights: {9: 10}\n      preset: spectrum-9\n");
  const auto loaded = load_topology(path);
  REQUIRE_FALSE(loaded);
  const auto text = test::shown(loaded.error());
  for (const auto* part :
       {"bad.yaml:8:16: error: priority 3 is listed twice", "XON at 50000 B is above XOFF at 40000 B",
        "'alpha' and 'xoff' are both given", "ECN marks from 1.91 MiB but must mark everything at 977 KiB",
        "'9' is no priority", "no device type 'spectrum-9'"}) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  }
}
