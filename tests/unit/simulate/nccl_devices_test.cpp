// SPDX-License-Identifier: Apache-2.0
// Devices that no log has taught: what stands for them is said and widens the band; what is not modelled is refused.
#include <algorithm>
#include <random>
#include <tuple>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/refusals.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::us;

namespace {

/// NCCL inside one host of the catalogue, or over two of them where `gpus` is more than it has.
LoadedScenario on_host(const std::string& host, int gpus, const std::string& workload, int hosts = 1,
                       const std::string& software = "{}") {
  const bool is_ethernet = host == "mi300x-8" || host == "hpe-4a100-slingshot";
  const std::string fabric = hosts == 1 ? ""
                             : is_ethernet
                                 ? "fabric: {single_switch: {switch: ethernet-400g-leaf, cable: 5 m, mtu: 9000 B}}\n"
                                 : "fabric: {single_switch: {switch: qm9700, cable: 5 m}}\n";
  const auto topology =
      test::write_file("devices-topology.yaml", "schema: fabricast/topology/1\nname: t\nhosts: [{name: node, count: " +
                                                    std::to_string(hosts) + ", type: " + host + "}]\n" + fabric);
  return test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology + "\nsoftware: " + software +
                        "\nworkload: {benchmark: " + workload + (gpus > 0 ? ", gpus: " + std::to_string(gpus) : "") +
                        "}\n");
}

/// The sentences that name what stands in.
std::vector<std::string> stand_ins(const Prediction& prediction) { return prediction.workloads[0].stand_ins; }

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("a GPU of an architecture without logs names the one that stands for it, and its band is wider") {
  const std::string sizes = "all_reduce_perf, sizes: [64 B, 64 KiB, 256 MiB]";
  const std::vector<std::tuple<std::string, int, std::string>> untaught{{"dgx-b200", 8, "hopper"},
                                                                        {"gb200-nvl4-tray", 4, "hopper"},
                                                                        {"gb200-nvl72", 72, "hopper"},
                                                                        {"dgx-1-p100", 8, "volta"}};
  for (const auto& [host, gpus, stand_in] : untaught) {
    const auto name = host;
    CAPTURE(name);
    const auto loaded = on_host(host, gpus, sizes);
    const auto prediction = test::run(loaded);
    const auto& workload = prediction.workloads[0];
    const auto said = stand_ins(prediction);
    REQUIRE(said.size() == 1);
    CHECK(says(said[0], "values of " + stand_in + " stand for its own"));
    CHECK(std::count(workload.assumptions.begin(), workload.assumptions.end(), said[0]) == 1);
    const double least = loaded.parameters.number("model.between_systems.stand_in");
    for (const auto& row : workload.rows) CHECK(row.high_time.us() >= (1 + least) * row.time.us());
  }
  for (const auto* host : {"dgx-a100", "hgx-h100-8", "hgx-h200-8", "dgx-1-v100"}) {
    CAPTURE(host);
    CHECK(stand_ins(test::run(on_host(host, 8, sizes))).empty());
  }
}

TEST_CASE("a GPU of the user's goes by the name of its architecture, without one by its compute capability") {
  const auto count = [](const std::string& attributes, int capability) {
    test::write_file(
        "own-gpu.yaml",
        "schema: fabricast/device/1\nname: own-gpu\nkind: gpu\n" + attributes +
            "values:\n  memory_bandwidth: {value: 2000 GB/s, source: test}\n  compute_capability: {value: " +
            std::to_string(capability) +
            ", source: test}\n  pcie_generation: {value: 4, source: test}\n  pcie_width: {value: 16, "
            "source: test}\n");
    const auto topology = test::write_file(
        "own-topology.yaml",
        "schema: fabricast/topology/1\nname: t\ndevices: [own-gpu.yaml]\nhosts:\n  - name: n\n    host:\n      "
        "processor: epyc-rome\n      devices: [{name: gpu0, type: own-gpu, below: socket0, pcie: gen4 x16}, {name: "
        "gpu1, type: own-gpu, below: socket0, pcie: gen4 x16}]\n");
    return stand_ins(test::run(test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology +
                                              "\nworkload: {benchmark: all_reduce_perf, gpus: 2, sizes: [1 MiB]}\n")))
        .size();
  };
  CHECK(count("attributes: {architecture: ampere}\n", 86) == 0);
  CHECK(count("attributes: {architecture: ada}\n", 89) == 1);
  CHECK(count("attributes: {architecture: rubin}\n", 90) == 1);
  CHECK(count("", 80) == 0);
  CHECK(count("", 100) == 1);
  CHECK(count("", 60) == 1);
}

TEST_CASE("what is reached by libfabric without any log of it says that verbs stand for it; TCP over it needs none") {
  const auto over = [](const std::string& software) {
    return test::run(on_host("hpe-4a100-slingshot", 8, "all_reduce_perf, sizes: [1 KiB, 64 MiB]", 2, software));
  };
  const auto prediction = over("{gpudirect_rdma: on}");
  REQUIRE(stand_ins(prediction).size() == 1);
  CHECK(says(stand_ins(prediction)[0], "libfabric (cxi)"));
  CHECK(stand_ins(over("{transport: tcp}")).empty());
}

TEST_CASE("all-reduce inside the new hosts takes longer for more bytes, and is not faster on fewer NVLinks") {
  std::mt19937 dice(1);  // NOLINT: the same draws every time
  for (const auto* host : {"dgx-b200", "gb200-nvl4-tray", "hpe-4a100-slingshot"}) {
    CAPTURE(host);
    for (int draw = 0; draw < 3; ++draw) {
      const auto small = static_cast<long>(1) << (3 + dice() % 26);
      const auto prediction = test::run(on_host(
          host, 4, "all_reduce_perf, sizes: [" + std::to_string(small) + " B, " + std::to_string(2 * small) + " B]"));
      CAPTURE(small);
      CHECK(prediction.workloads[0].rows[1].time >= prediction.workloads[0].rows[0].time);
    }
  }
  // Twice the NVLinks of Hopper: never slower, and clearly faster where bytes count.
  const std::string sizes = "all_reduce_perf, sizes: [1 MiB, 1 GiB]";
  const auto hopper = test::run(on_host("hgx-h100-8", 8, sizes));
  const auto blackwell = test::run(on_host("dgx-b200", 8, sizes));
  CHECK(us(blackwell, 1_GiB) < 0.7 * us(hopper, 1_GiB));
  CHECK(us(blackwell, 1_MiB) <= 1.001 * us(hopper, 1_MiB));
}

TEST_CASE("RCCL, training and buffers of MI300X are refused; host buffers and the fabric are forecast") {
  for (const auto* workload :
       {"all_reduce_perf, sizes: [1 MiB]", "sendrecv_perf, sizes: [1 MiB]",
        "osu_bw, buffers: [device, device], sizes: [1 MiB]", "osu_latency, buffers: [host, device], sizes: [8 B]"}) {
    CAPTURE(workload);
    const auto said = test::refusal_of(on_host("mi300x-8", 0, workload, 2));
    CHECK(says(said, "mi300x"));
    CHECK(says(said, "are not modelled"));
  }
  CHECK(test::refusal_of(on_host("mi300x-8", 0, "osu_bw, buffers: [host, host], sizes: [1 MiB]", 2)).empty());
  CHECK(test::refusal_of(on_host("mi300x-8", 0, "ib_write_bw, sizes: [1 MiB]", 2)).empty());
}

TEST_CASE("BlueField-3 and Thor 2 carry what their rate lets them, a 400 Gb/s port twice a 200 Gb/s one") {
  const auto rate = [](const std::string& hca, const std::string& switch_type) {
    const auto topology = test::write_file(
        "adapters.yaml",
        "schema: fabricast/topology/1\nname: t\nhosts:\n  - name: n\n    count: 2\n    host:\n      "
        "processor: xeon-sapphirerapids\n      devices: [{name: hca0, type: " +
            hca + ", below: socket0, pcie: gen5 x16}]\nfabric: {single_switch: {switch: " + switch_type +
            ", cable: 2 m, mtu: 9000 B}}\n");
    return test::run(test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology +
                                    "\nworkload: {benchmark: ib_write_bw, sizes: [8 MiB]}\n"))
        .workloads[0]
        .rows[0]
        .algbw.bytes_per_s;
  };
  const double thor = rate("bcm57608-400g", "ethernet-400g-leaf");
  CHECK(thor == test::approx(50e9).epsilon(0.1));
  CHECK(rate("bluefield-3-400g", "ethernet-400g-leaf") == test::approx(thor).epsilon(0.02));
  CHECK(rate("connectx-7-200g", "ethernet-400g-leaf") == test::approx(thor / 2).epsilon(0.1));
}
