// SPDX-License-Identifier: Apache-2.0
// Headroom against the vendor's published table of the SN2700, and against the physical least.
#include <cmath>

#include "fabricast/lossless.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

HeadroomInput spectrum(double gigabits, double cable_m) {
  return {Bandwidth{gigabits * 1.25e8}, cable_m, 1500_B, 9100_B, 96_B, 819_B, 3891_B, 19_KiB};
}

struct TableRow {
  double gigabits;
  double cable_m;
  std::int64_t xoff;
};
// pg_profile_lookup.ini of the SN2700; size = xon + xoff in every row.
constexpr TableRow k_sn2700[] = {{10, 5, 29696},    {25, 5, 29696},   {40, 5, 29696},   {50, 5, 29696},
                                 {100, 5, 30720},   {25, 40, 31744},  {40, 40, 32768},  {50, 40, 33792},
                                 {100, 40, 38912},  {25, 300, 48128}, {40, 300, 59392}, {50, 300, 66560},
                                 {100, 300, 104448}};

}  // namespace

TEST_CASE("the vendor's formula gives the SN2700 table within 2 KiB, most rows exactly") {
  int exact = 0;
  for (const auto& row : k_sn2700) {
    CAPTURE(row.gigabits);
    CAPTURE(row.cable_m);
    const auto made = vendor_headroom(spectrum(row.gigabits, row.cable_m));
    CHECK(std::abs(made.xoff.value - row.xoff) <= 2048);
    CHECK(made.xon == Bytes{19456});
    CHECK(made.size == made.xon + made.xoff);
    exact += made.xoff.value == row.xoff ? 1 : 0;
  }
  CHECK(exact >= 9);
}

TEST_CASE("headroom grows with rate and cable and never falls below the physical least") {
  for (const double gigabits : {10.0, 25.0, 100.0}) {
    Bytes before;
    for (const double metres : {0.0, 3.0, 40.0, 300.0, 2000.0}) {
      const auto input = spectrum(gigabits, metres);
      CHECK(vendor_headroom(input).xoff >= before);
      before = vendor_headroom(input).xoff;
      CHECK(before >= least_headroom(input, Bytes{4178}));
      CHECK(vendor_headroom(spectrum(gigabits * 4, metres)).xoff >= before);
    }
  }
}

TEST_CASE("the least headroom is a round trip, two packets and the response") {
  // 100 Gb/s over 99 m: 2 x 99 / 1.98e8 s x 12.5e9 B/s = 12500 B.
  CHECK(least_headroom(spectrum(100, 99), Bytes{1000}) == Bytes{12500 + 2000 + 3891});
}

TEST_CASE("cells above 128 B count a 64 B packet each") {
  auto input = spectrum(100, 5);
  input.cell = 144_B;
  // 1500 + 144/64 x (9100 + 631.3 + 819 + 3891) = 33993 -> 34 KiB; SONiC's SN3700 row says 33 KiB.
  CHECK(vendor_headroom(input).xoff == 34_KiB);
}

TEST_CASE("the shipped RoCE switch has the SN2700's headroom of 100 Gb/s over 5 m on eight ports") {
  const auto loaded = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/roce-sn2700.yaml");
  REQUIRE(loaded);
  const auto ports = port_headrooms(loaded->topology, loaded->parameters);
  REQUIRE(ports.size() == 1);
  CHECK(ports[0].num_ports == 8);
  CHECK(ports[0].cable_m == test::approx(5));
  CHECK(ports[0].vendor.xoff == Bytes{30720});
  CHECK(ports[0].vendor.size == Bytes{50176});
  CHECK(ports[0].configured == ports[0].vendor.xoff);
  CHECK(ports[0].example == "switch0 <- node0.hca0");
}

TEST_CASE("the other cables of the SN2700 table, through the topology file") {
  for (const auto& row : {std::pair("5 m", 30720), std::pair("40 m", 38912), std::pair("300 m", 104448)}) {
    const auto& [cable, xoff] = row;
    CAPTURE(row.first);
    const auto loaded = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/roce-sn2700.yaml", {},
                                      {{"fabric.single_switch.cable", cable}});
    REQUIRE(loaded);
    const auto ports = port_headrooms(loaded->topology, loaded->parameters);
    REQUIRE(ports.size() == 1);
    CHECK(std::abs(ports[0].vendor.xoff.value - xoff) <= 2048);
  }
}

TEST_CASE("cables between switches may be longer than those to hosts") {
  const auto loaded = test::topology(
      "schema: fabricast/topology/1\nname: t\nhosts: [{name: n, count: 4, type: server-1v100-cx4-100g}]\n"
      "fabric:\n  leaf_spine: {switch: sn2700, leaf_ports: 4, cable: 3 m, switch_cable: 40 m, lossless: {pfc: [3]}}\n");
  const auto ports = port_headrooms(loaded.topology, loaded.parameters);
  REQUIRE(ports.size() == 2);
  CHECK(ports[0].cable_m == test::approx(3));
  CHECK(ports[0].num_ports == 4);
  CHECK(ports[1].cable_m == test::approx(40));
  CHECK(ports[1].vendor.xoff > ports[0].vendor.xoff);
}
