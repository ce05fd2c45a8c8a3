// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

using Values = std::map<std::string, std::string>;

const Values k_gpu_values{
    {"memory_bandwidth", "1 TB/s"}, {"compute_capability", "80"}, {"pcie_generation", "4"}, {"pcie_width", "8"}};

std::string device_file(const std::string& name, const std::string& kind, const Values& values) {
  auto text = "schema: fabricast/device/1\nname: " + name + "\nkind: " + kind + "\nvalues:\n";
  for (const auto& [field, value] : values) text += "  " + field + ": {value: " + value + ", source: own}\n";
  return text;
}

/// Faults of a device file of these values, or nothing.
std::string faults_of_device(const std::string& name, const std::string& kind, const Values& values) {
  const auto device = load_device(test::write_file("d.yaml", device_file(name, kind, values)));
  return device ? "" : test::shown(device.error());
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("every shipped device and parameter has a source") {
  const auto catalogue = load_whole_catalogue();
  if (!catalogue) FAIL(render(catalogue.error()));
  CHECK(catalogue->device_types.size() > 100);
  for (const auto& row : catalogue->parameters.all()) {
    const auto& [name, parameter] = row;
    CAPTURE(row.first);
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
                           "b200-sxm",
                           "b300-sxm",
                           "gb200",
                           "gb300",
                           "h200-nvl",
                           "rtx-pro-6000-server",
                           "gh200",
                           "h20-sxm",
                           "slingshot-11",
                           "bcm57608-400g",
                           "bluefield-3-ndr",
                           "bluefield-3-400g",
                           "rosetta",
                           "grace",
                           "nvswitch-4",
                           "dgx-b200",
                           "gb200-nvl72",
                           "hgx-b300-8",
                           "gb300-nvl72",
                           "hpe-4gh200-slingshot",
                           "quad-gh200-ndr200",
                           "server-2s-sapphirerapids-8l40s",
                           "connectx-8-xdr",
                           "connectx-8-2x400g",
                           "q3400",
                           "sn5600",
                           "xeon-graniterapids",
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
  test::write_file("my-gpu.yaml", device_file("my-gpu", "gpu", k_gpu_values));
  const auto loaded = test::topology(
      "schema: fabricast/topology/1\nname: t\ndevices: [my-gpu.yaml]\nhosts:\n  - name: n\n    host:\n      processor: "
      "epyc-rome\n      devices: [{name: gpu0, type: my-gpu, below: socket0}]\n");
  const auto path = loaded.topology.path_in_host(loaded.topology.devices(DeviceKind::gpu)[0],
                                                 loaded.topology.devices(DeviceKind::memory)[0]);
  REQUIRE(path);
  CHECK(path->bottleneck.bytes_per_s == test::approx(pcie_bandwidth(4, 8, 256).bytes_per_s));
}

TEST_CASE("a device file without a value that models need is refused with the value's name and an example") {
  const std::map<std::string, Values> sound{
      {"gpu", k_gpu_values},
      {"hca",
       {{"rate", "100 Gb/s"},
        {"latency", "600 ns"},
        {"mtu", "4096"},
        {"packet_header", "30"},
        {"pcie_generation", "4"},
        {"pcie_width", "16"}}},
      {"network_switch", {{"ports", "40"}, {"rate", "100 Gb/s"}, {"latency", "100 ns"}}},
      {"nvswitch", {{"ports", "18"}, {"port_bandwidth", "25 GB/s"}, {"latency", "100 ns"}}},
      {"processor",
       {{"memory_bandwidth", "100 GB/s"},
        {"pcie_generation", "4"},
        {"root_complex_bandwidth", "40 GB/s"},
        {"root_complex_latency", "100 ns"},
        {"max_payload", "256"}}}};
  for (const auto& row : sound) {
    const auto& [kind, values] = row;
    CAPTURE(row.first);
    CHECK(faults_of_device("mine", kind, values) == "");
    for (const auto& entry : values) {
      const auto& [field, value] = entry;
      CAPTURE(entry.first);
      auto fewer = values;
      fewer.erase(field);
      const auto text = faults_of_device("mine", kind, fewer);
      CHECK(text.starts_with("d.yaml:5:3: error: " + kind + " 'mine' has no value '" + field + "'"));
      CHECK(says(text, "note: add it under `values`, e.g. `" + field + ": {value: "));
    }
  }
}

TEST_CASE("NVLink and the second socket need all their values or none") {
  auto gpu = k_gpu_values;
  gpu["nvlink_links"] = "6";
  const auto text = faults_of_device("mine", "gpu", gpu);
  for (const auto* field : {"nvlink_link_bandwidth", "nvlink_efficiency", "nvlink_latency"}) {
    CAPTURE(field);
    CHECK(says(text, "has no value '" + std::string(field) + "'"));
  }
  gpu.insert({{"nvlink_link_bandwidth", "25 GB/s"}, {"nvlink_efficiency", "0.9"}, {"nvlink_latency", "1 us"}});
  CHECK(faults_of_device("mine", "gpu", gpu) == "");
}

TEST_CASE("values no device can have are refused") {
  auto gpu = k_gpu_values;
  gpu["pcie_generation"] = "9";
  CHECK(says(faults_of_device("mine", "gpu", gpu), "'value' of 'mine.pcie_generation' is 9, outside its range\n"));
  CHECK(says(faults_of_device("mine", "gpu", gpu), "note: give a generation: 1 to 6"));
  gpu["pcie_generation"] = "4";
  gpu["memory_bandwidth"] = "0 GB/s";
  CHECK(says(faults_of_device("mine", "gpu", gpu), "'mine.memory_bandwidth' is 0 GB/s"));
}

TEST_CASE("a device type has a name of its own: none of a software layer, no dot, none of another file") {
  CHECK(says(faults_of_device("pcie", "gpu", k_gpu_values), "the name 'pcie' is taken"));
  CHECK(says(faults_of_device("my.gpu", "gpu", k_gpu_values), "use a name without dots and spaces"));
  test::write_file("a.yaml", device_file("mine", "gpu", k_gpu_values));
  test::write_file("b.yaml", device_file("mine", "gpu", k_gpu_values));
  const auto both = load_topology(test::write_file(
      "t.yaml",
      "schema: fabricast/topology/1\nname: t\ndevices: [a.yaml, b.yaml]\nhosts:\n  - {name: n, type: dgx-a100}\n"));
  REQUIRE_FALSE(both);
  CHECK(says(test::shown(both.error()), "b.yaml:2:7: error: two device files declare 'mine': this one and "));
}

TEST_CASE("the names of software layers are those the shipped parameters start with") {
  const auto shipped = load_shipped_parameters();
  REQUIRE(shipped);
  for (const auto& row : shipped->all()) {
    const auto& [name, parameter] = row;
    CAPTURE(row.first);
    CHECK(says(faults_of_device(name.substr(0, name.find('.')), "gpu", k_gpu_values), "is taken"));
  }
}

TEST_CASE("the schema files for editors are those the readers' tables give") {
  const std::pair<const char*, const char*> files[] = {{"topology", "topologies/topology.schema.json"},
                                                       {"scenario", "scenarios/scenario.schema.json"},
                                                       {"device", "models/device.schema.json"},
                                                       {"parameters", "models/parameters.schema.json"},
                                                       {"calibration", "calibration/calibration.schema.json"},
                                                       {"network", "models/network.schema.json"},
                                                       {"plan", "scenarios/plan.schema.json"},
                                                       {"cost", "scenarios/cost.schema.json"}};
  for (const auto& row : files) {
    const auto& [kind, name] = row;
    CAPTURE(row.second);
    const auto path = std::string(FABRICAST_SOURCE_DIR) + "/" + name;
    if (std::getenv("FABRICAST_UPDATE_SCHEMAS") != nullptr) std::ofstream(path) << json_schema(kind);
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    CHECK(text == json_schema(kind));
  }
}

TEST_CASE("a switch of the catalogue has the buffers of the ASIC that its page or the ASIC's names") {
  const auto catalogue = load_whole_catalogue();
  REQUIRE(catalogue);
  const auto upper = [](std::string text) {
    for (auto& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
  };
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; };
  // "Spectrum" is not named by "Spectrum-4", nor "Tomahawk" by "Tomahawk 3".
  const auto names = [&](const std::string& text, const std::string& word) {
    const auto at = text.find(word);
    if (word.empty() || at == std::string::npos || (at > 0 && is_part(text[at - 1]))) return false;
    const auto after = text.substr(at + word.size());
    return after.empty() || (!is_part(after[0]) && !(after.size() > 1 && std::isdigit(after[1]) != 0));
  };
  int with_asic = 0;
  for (const auto& asic : catalogue->device_types) {
    if (asic.kind != "switch_asic") continue;
    // "NVIDIA Spectrum-4 (SN5600)": the maker, the ASIC, switches with it.
    const auto begin = asic.description.find(' ') + 1;
    const auto product = asic.description.substr(begin, asic.description.find(" (") - begin);
    for (const auto& type : catalogue->device_types) {
      if (type.kind != "network_switch" || type.description.find(" or ") != std::string::npos) continue;
      CAPTURE(type.name);
      CAPTURE(asic.name);
      const auto own = type.attributes.find("asic");
      const bool has_it = own != type.attributes.end() && own->second == asic.name;
      CHECK(has_it == (names(type.description, product) || names(asic.description, upper(type.name))));
      with_asic += has_it ? 1 : 0;
    }
  }
  CHECK(with_asic >= 7);
}
