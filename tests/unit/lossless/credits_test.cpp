// SPDX-License-Identifier: Apache-2.0
// Buffers of InfiniBand lanes against the cables that their switches are made for.
#include <set>

#include "fabricast/check.hpp"
#include "fabricast/lossless.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

struct Generation {
  const char* type;
  const char* host;
  int longest_m;  ///< as the catalogue says
};

constexpr Generation k_generations[] = {{"is5035", "server-qdr-cx3", 100}, {"sx6036", "server-4k80-fdr", 100},
                                        {"sb7800", "abci-v100", 100},      {"qm8700", "dgx-a100", 100},
                                        {"qm9700", "hgx-h100-8", 500},     {"q3400", "hgx-b300-8", 500}};

LoadedScenario one_flow(const Generation& one, int metres, const std::string& lossless = "") {
  return test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, count: 4, type: " +
      std::string(one.host) + "}]\n  fabric: {leaf_spine: {switch: " + one.type +
      ", leaf_ports: 4, switch_cable: " + std::to_string(metres) + " m" + lossless +
      "}}\nworkload: {benchmark: traffic, sizes: [16 MB], flows: [{from: n0, to: n3}]}\n");
}

double seconds(const LoadedScenario& loaded, Fidelity fidelity) {
  SimulateOptions options;
  options.fidelity = fidelity;
  return test::run(loaded, options).workloads[0].rows.at(0).time.seconds();
}

std::string doubts(const LoadedScenario& loaded) {
  return render(check_lossless(loaded.topology, loaded.parameters, &loaded.scenario));
}

std::string assumptions(const LoadedScenario& loaded) {
  SimulateOptions options;
  options.fidelity = Fidelity::automatic;
  std::string all;
  const auto prediction = test::run(loaded, options);
  for (const auto& one : prediction.workloads[0].assumptions) all += one + "\n";
  return all;
}

bool says(const std::string& text, const std::string& words) {
  CAPTURE(text);
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("every InfiniBand switch of the catalogue names its longest cable, and none a memory that its ports share") {
  const auto catalogue = load_whole_catalogue();
  REQUIRE(catalogue);
  std::set<std::string> known;
  for (const auto& one : k_generations) known.insert(one.type);
  int found = 0;
  for (const auto& type : catalogue->device_types) {
    const auto protocol = type.attributes.find("protocol");
    if (type.kind != "network_switch" || protocol == type.attributes.end() || protocol->second != "infiniband")
      continue;
    CAPTURE(type.name);
    ++found;
    CHECK(known.contains(type.name));
    CHECK(catalogue->parameters.contains(type.name + ".longest_cable"));
    CHECK_FALSE(catalogue->parameters.contains(type.name + ".buffer"));
  }
  CHECK(found == static_cast<int>(known.size()));
}

TEST_CASE("an idle InfiniBand link runs at full rate over any cable that its switches are made for") {
  for (const auto& one : k_generations) {
    for (const int metres : {1, one.longest_m / 10, one.longest_m / 2, one.longest_m}) {
      CAPTURE(one.type);
      CAPTURE(metres);
      const auto loaded = one_flow(one, metres);
      CHECK(seconds(loaded, Fidelity::packet) == test::approx(seconds(loaded, Fidelity::fluid)).epsilon(0.01));
      CHECK(doubts(loaded) == "");
      CHECK(says(assumptions(loaded), "no link is oversubscribed"));
    }
  }
}

TEST_CASE("a cable longer than credits last for is said to be slow, with and without a lossless block, and is") {
  for (const auto& one : {k_generations[3], k_generations[4], k_generations[5]}) {
    for (const auto* lossless : {"", ", lossless: {virtual_lanes: 1}"}) {
      CAPTURE(one.type);
      const auto loaded = one_flow(one, 10 * one.longest_m, lossless);
      CHECK(says(doubts(loaded), "of buffer per lane keep"));
      CHECK(says(assumptions(loaded), "of buffer per lane let"));
      CHECK(seconds(loaded, Fidelity::packet) > 1.2 * seconds(loaded, Fidelity::fluid));
    }
  }
  const auto small = one_flow(k_generations[4], 100, ", lossless: {vl_buffer: 32 KiB}");
  CHECK(says(assumptions(small), "credits for 32 KiB of buffer per lane let"));
}

TEST_CASE("a lane has as much buffer as the longest cable needs, unless somebody says how much") {
  const auto of = [](const Generation& one, const std::string& lossless = "") {
    const auto loaded = one_flow(one, 10, lossless);
    return lossless_settings(loaded.topology, loaded.parameters).vl_buffer;
  };
  // 64 KiB last for 100 m up to HDR: 25 GB/s x (1010 + 130 + 256 ns) + 8192 B = 43 kB.
  for (int g = 0; g < 4; ++g) CHECK(of(k_generations[g]) == 64_KiB);
  // 50 GB/s x (5050 + 150 + 256 ns) + 8192 B = 280992 B, in blocks of 64 B; twice the rate of it.
  CHECK(of(k_generations[4]) == Bytes{281'024});
  CHECK(of(k_generations[5]) == Bytes{553'792});
  CHECK(of(k_generations[5], ", lossless: {vl_buffer: 96 KiB}") == 96_KiB);
}

TEST_CASE("a memory that the ports of an InfiniBand switch would share is refused") {
  const auto page = [](const std::string& protocol) {
    const auto device = load_device(test::write_file(
        "d.yaml",
        "schema: fabricast/device/1\nname: sw\nkind: network_switch\nattributes: {protocol: " + protocol +
            "}\nvalues:\n  ports: {value: 8, source: own}\n  rate: {value: 100 Gb/s, source: own}\n  latency: "
            "{value: 100 ns, source: own}\n  buffer: {value: 9 MiB, source: own}\n"));
    return device ? std::string() : test::shown(device.error());
  };
  CHECK(says(page("infiniband"), "'buffer' does nothing for an InfiniBand switch"));
  CHECK(page("ethernet") == "");
}
