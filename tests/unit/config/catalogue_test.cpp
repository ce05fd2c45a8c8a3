// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>

#include "tests/support/clusters.hpp"

using namespace fabricast;

TEST_CASE("every shipped device and parameter has a source") {
  const auto catalogue = load_whole_catalogue();
  if (!catalogue) FAIL(render(catalogue.error()));
  CHECK(catalogue->device_types.size() > 100);
  for (const auto& [name, parameter] : catalogue->parameters.all()) {
    CAPTURE(name);
    CHECK(parameter.source.size() > 3);
    CHECK(parameter.low <= parameter.value);
    CHECK(parameter.value <= parameter.high);
  }
}

TEST_CASE("the catalogue holds the devices planners ask for") {
  const auto catalogue = load_whole_catalogue();
  REQUIRE(catalogue);
  std::set<std::string> names;
  for (const auto& type : catalogue->device_types) names.insert(type.name);
  for (const auto* name : {"k20x",
                           "k40m",
                           "k80",
                           "p100-pcie-12",
                           "p100-pcie-16",
                           "p100-sxm2",
                           "v100-pcie-16",
                           "v100-sxm2-16",
                           "v100-sxm2-32",
                           "a100-pcie-40",
                           "a100-pcie-80",
                           "a100-sxm4-40",
                           "a100-sxm4-80",
                           "t4",
                           "a10",
                           "a30",
                           "a40",
                           "l40s",
                           "h100-pcie",
                           "h100-sxm",
                           "h200-sxm",
                           "connectx-3-fdr",
                           "connect-ib",
                           "connectx-4-edr",
                           "connectx-5-edr",
                           "connectx-6-hdr",
                           "connectx-6-dx-100g",
                           "connectx-7-ndr",
                           "sx6036",
                           "sb7800",
                           "qm8700",
                           "qm9700",
                           "sn2700",
                           "sn3700",
                           "nvswitch-1",
                           "nvswitch-2",
                           "nvswitch-3",
                           "dgx-1-p100",
                           "dgx-1-v100",
                           "dgx-a100",
                           "hgx-h100-8",
                           "hgx-h200-8"}) {
    CAPTURE(name);
    CHECK(names.count(name) == 1);
  }
}

TEST_CASE("a user's own device file adds a type") {
  test::write_file(
      "my-gpu.yaml",
      "schema: fabricast/device/1\nname: my-gpu\nkind: gpu\nvalues:\n  pcie_generation: {value: 4, source: own}\n  "
      "pcie_width: {value: 8, source: own}\n  memory_bandwidth: {value: 1 TB/s, source: own}\n");
  const auto loaded = test::topology(
      "schema: fabricast/topology/1\nname: t\ndevices: [my-gpu.yaml]\nhosts:\n  - name: n\n    host:\n      processor: "
      "epyc-rome\n      devices: [{name: gpu0, type: my-gpu, below: socket0}]\n");
  const auto path = loaded.topology.path_in_host(loaded.topology.devices(DeviceKind::gpu)[0],
                                                 loaded.topology.devices(DeviceKind::memory)[0]);
  REQUIRE(path);
  CHECK(path->bottleneck.bytes_per_s == doctest::Approx(pcie_bandwidth(4, 8, 256).bytes_per_s));
}

TEST_CASE("the schema files for editors are those the readers' tables give") {
  const std::pair<const char*, const char*> files[] = {{"topology", "topologies/topology.schema.json"},
                                                       {"scenario", "scenarios/scenario.schema.json"},
                                                       {"device", "models/device.schema.json"},
                                                       {"parameters", "models/parameters.schema.json"},
                                                       {"calibration", "calibration/calibration.schema.json"}};
  for (const auto& [kind, name] : files) {
    CAPTURE(name);
    const auto path = std::string(FABRICAST_SOURCE_DIR) + "/" + name;
    if (std::getenv("FABRICAST_UPDATE_SCHEMAS") != nullptr) std::ofstream(path) << json_schema(kind);
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    CHECK(text == json_schema(kind));
  }
}
