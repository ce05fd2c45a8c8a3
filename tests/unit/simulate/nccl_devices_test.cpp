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
  const bool is_ethernet = host.starts_with("mi3") || host == "hpe-4a100-slingshot";
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

void set(LoadedScenario& loaded, const std::string& name, double value) {
  Parameter parameter;
  parameter.name = name;
  parameter.value = parameter.low = parameter.high = value;
  loaded.parameters.set(parameter);
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE(
    "a release of NCCL older than the GPUs says so and widens the band, the first that has rules for them does not") {
  struct Younger {
    const char *host, *last_without, *first;
  };
  for (const auto& one : {Younger{"dgx-a100", "2.6", "2.7"}, Younger{"hgx-h100-8", "2.14", "2.15"},
                          Younger{"dgx-b200", "2.24", "2.25"}}) {
    CAPTURE(one.host);
    const auto of = [&](const std::string& release) {
      return test::run(
          on_host(one.host, 8, "all_reduce_perf, sizes: [64 KiB]", 1, "{nccl: {version: \"" + release + "\"}}"));
    };
    const auto old = of(one.last_without);
    const auto said = stand_ins(old);
    CHECK(std::ranges::any_of(said, [&](const std::string& sentence) {
      return says(sentence, "NCCL " + std::string(one.last_without) + " has no rules for compute capability") &&
             says(sentence, std::string(one.first) + " is the first that does");
    }));
    for (const auto& sentence : stand_ins(of(one.first))) CHECK_FALSE(says(sentence, "has no rules"));
  }
  CHECK(stand_ins(
            test::run(on_host("dgx-1-v100", 8, "all_reduce_perf, sizes: [64 KiB]", 1, "{nccl: {version: \"2.4\"}}")))
            .empty());
}

TEST_CASE("a GPU of an architecture without logs names the one that stands for it, and its band is wider") {
  const std::string sizes = "all_reduce_perf, sizes: [64 B, 64 KiB, 256 MiB]";
  // Of Blackwell logs have taught one host, none what goes between hosts.
  const std::vector<std::tuple<std::string, int, int, std::string>> untaught{
      {"dgx-b200", 16, 2, "hopper"}, {"dgx-b200", 32, 4, "hopper"}, {"dgx-1-p100", 8, 1, "volta"}};
  for (const auto& [host, gpus, hosts, stand_in] : untaught) {
    const auto name = host;
    CAPTURE(name);
    const auto loaded = on_host(host, gpus, sizes, hosts);
    const auto prediction = test::run(loaded);
    const auto& workload = prediction.workloads[0];
    const auto said = stand_ins(prediction);
    REQUIRE(!said.empty());
    CHECK(says(said[0], "values of " + stand_in + " stand for its own"));
    CHECK(std::count(workload.assumptions.begin(), workload.assumptions.end(), said[0]) == 1);
    const double least = loaded.parameters.number("model.between_systems.stand_in");
    for (const auto& row : workload.rows) CHECK(row.high_time.us() >= (1 + least) * row.time.us());
  }
  for (const auto* host : {"dgx-a100", "hgx-h100-8", "hgx-h200-8", "dgx-1-v100"}) {
    CAPTURE(host);
    CHECK(stand_ins(test::run(on_host(host, 8, sizes))).empty());
  }
  // NVLink SHARP of Blackwell was in no log either; rings inside its hosts were.
  for (const auto* host : {"dgx-b200", "gb200-nvl72"}) {
    CAPTURE(host);
    const auto said = stand_ins(test::run(on_host(host, 8, sizes)));
    REQUIRE(said.size() == 1);
    CHECK(says(said[0], "no log of NVLink SHARP"));
    CHECK(stand_ins(test::run(on_host(host, 8, sizes, 1, "{nccl: {nvls: off}}"))).empty());
    CHECK(stand_ins(test::run(on_host(host, 8, "all_gather_perf, sizes: [1 MiB]"))).empty());
  }
  CHECK(stand_ins(test::run(on_host("hgx-h100-8", 16, sizes, 2))).empty());
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
  CHECK(count("", 100) == 0);
  CHECK(count("", 120) == 1);
  CHECK(count("", 60) == 1);
}

TEST_CASE("what is reached by libfabric without any log of it says that verbs stand for it, TCP over it needs none") {
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
}

TEST_CASE(
    "GPUs on NVLink-C2C reach the HCAs of their processor by GPUDirect RDMA from NCCL 2.27 on, before where told") {
  const auto staged = [](const std::string& host, const std::string& nccl) {
    const auto prediction =
        test::run(on_host(host, 8, "all_reduce_perf, sizes: [1 KiB, 256 MiB]", 2, "{nccl: " + nccl + "}"));
    const auto& said = prediction.workloads[0].assumptions;
    return std::ranges::any_of(said, [](const auto& one) { return says(one, "GPUDirect RDMA is not used"); });
  };
  CHECK_FALSE(staged("gb200-nvl4-tray", "{version: \"2.28\"}"));
  CHECK_FALSE(staged("gb200-nvl4-tray", "{version: \"2.27\"}"));
  CHECK(staged("gb200-nvl4-tray", "{version: \"2.26\"}"));
  CHECK_FALSE(staged("gb200-nvl4-tray", "{version: \"2.26\", gdr_level: phb}"));
  CHECK(staged("gb200-nvl4-tray", "{version: \"2.28\", gdr_level: pxb}"));
  // A processor's other slots are as far as ever: Leonardo's GPUs and HCAs.
  CHECK(staged("leonardo-booster", "{version: \"2.28\"}"));
  CHECK_FALSE(staged("leonardo-booster", "{version: \"2.28\", gdr_level: phb}"));
}

TEST_CASE("what a GPU on NVLink-C2C has is memory of its processor to an HCA, not a PCIe peer") {
  const std::string sizes = "sendrecv_perf, sizes: [1 GiB]";
  const auto narrow = [&](const std::string& host, double gb_per_s) {
    auto loaded = on_host(host, 0, sizes, 2);
    const std::string processor = host == "gb200-nvl4-tray" ? "grace" : "xeon-icelake";
    for (const auto* field : {".p2p_read_bandwidth", ".p2p_write_bandwidth"})
      set(loaded, processor + field, gb_per_s * 1e9);
    loaded.scenario.software.nccl_gdr_level = "phb";
    return test::run(loaded).workloads[0].rows[0].time.us();
  };
  CHECK(narrow("gb200-nvl4-tray", 1) == test::approx(narrow("gb200-nvl4-tray", 40)));
  CHECK(narrow("leonardo-booster", 1) > 3 * narrow("leonardo-booster", 40));
}

TEST_CASE("an architecture takes its elder's value where it has none of its own, and its own where it has one") {
  using Values = std::vector<std::pair<std::string, double>>;
  const auto time = [](const Values& values) {
    auto loaded = on_host("dgx-b200", 8, "all_reduce_perf, sizes: [1 KiB]");
    for (const auto& [name, value] : values) set(loaded, name, value);
    return test::run(loaded).workloads[0].rows[0].time.us();
  };
  const double shipped = time({});
  // Its own value counts, not the elder's, nor that of all GPUs.
  CHECK(time({{"nccl.hop_time.ring.ll.nvlink.hopper", 9e-6}}) == test::approx(shipped));
  CHECK(time({{"nccl.hop_time.ring.ll.nvlink", 9e-6}}) == test::approx(shipped));
  CHECK(time({{"nccl.hop_time.ring.ll.nvlink.blackwell", 9e-6}}) > 2 * shipped);
  // Where it has none, the elder's does: more exact than that of all GPUs.
  const Values hopper{{"nccl.step_overhead.ll.hopper", 900e-6}};
  CHECK(time(hopper) > 1.1 * shipped);
  CHECK(time({{"nccl.step_overhead.ll", 900e-6}, hopper[0]}) == test::approx(time(hopper)));
  // With another elder, another's.
  const std::pair<std::string, double> volta{"architecture.blackwell.elder", 70};
  CHECK(time({volta, hopper[0]}) == test::approx(time({volta})));
  CHECK(time({volta, {"nccl.step_overhead.ll.volta", 900e-6}}) > 1.1 * time({volta}));
}

TEST_CASE(
    "RCCL of MI300X and MI355X is forecast by AMD's planning figures, which the result says, training and MPI are "
    "refused") {
  const std::string sizes = "all_reduce_perf, sizes: [64 B, 512 KiB, 1 GiB]";
  // Seven links of 48 or 57.6 GB/s are the most that leaves a GPU; what leaves a host is eight ways of as much or eight
  // adapters of 50 GB/s.
  const std::vector<std::tuple<std::string, double, double>> all{
      {"mi300x-8", 336e9, 384e9}, {"mi350x-8", 403.2e9, 400e9}, {"mi355x-8", 403.2e9, 400e9}};
  for (const auto& [type, in_host, between] : all) {
    for (const int hosts : {1, 2}) {
      const auto prediction = test::run(on_host(type, 0, sizes, hosts));
      const auto sentences = stand_ins(prediction);
      REQUIRE(sentences.size() == 1);
      CHECK(says(sentences[0], "AMD's own planning figures"));
      CHECK(says(sentences[0], type == "mi300x-8" ? "MEC firmware 177," : "MEC firmware 24,"));
      const double most = hosts == 1 ? in_host : between;
      const auto& rows = prediction.workloads[0].rows;
      CHECK(rows[2].busbw.bytes_per_s < most);
      CHECK(rows[2].busbw.bytes_per_s > 0.9 * most);
      CHECK(rows[0].time < rows[1].time);
    }
  }
  CHECK(says(test::refusal_of(on_host("mi355x-8", 0, "osu_bw, buffers: [device, device], sizes: [1 MiB]", 2)),
             "are not modelled"));
  CHECK(test::refusal_of(on_host("mi355x-8", 0, "osu_bw, buffers: [host, host], sizes: [1 MiB]", 2)).empty());
  for (const auto* workload :
       {"osu_bw, buffers: [device, device], sizes: [1 MiB]", "osu_latency, buffers: [host, device], sizes: [8 B]"}) {
    CAPTURE(workload);
    const auto said = test::refusal_of(on_host("mi300x-8", 0, workload, 2));
    CHECK(says(said, "mi300x"));
    CHECK(says(said, "are not modelled"));
  }
  CHECK(test::refusal_of(on_host("mi300x-8", 0, "osu_bw, buffers: [host, host], sizes: [1 MiB]", 2)).empty());
  CHECK(test::refusal_of(on_host("mi300x-8", 0, "ib_write_bw, sizes: [1 MiB]", 2)).empty());
}

TEST_CASE("what RCCL does not have is refused, and its schedules elsewhere") {
  const auto refused = [](const std::string& host, int gpus, const std::string& workload, int hosts,
                          const std::string& software) {
    return test::refusal_of(on_host(host, gpus, "all_reduce_perf, sizes: [1 MiB]" + workload, hosts, software));
  };
  CHECK(says(refused("mi300x-8", 0, "", 1, "{nccl: {version: \"2.17\"}}"), "RCCL 2.17"));
  CHECK(says(refused("mi355x-8", 0, "", 1, "{nccl: {version: \"2.25\"}}"), "RCCL 2.25 does not know GPUs of CDNA 4"));
  CHECK(says(refused("mi355x-8", 0, "", 1, "{nccl: {version: \"2.25\"}}"), "2.26 and later"));
  CHECK(refused("mi355x-8", 0, "", 1, "{nccl: {version: \"2.26\"}}").empty());
  CHECK(says(refused("mi300x-8", 0, "", 2, "{nccl: {collnet: on}}"), "collnet"));
  CHECK(says(refused("mi300x-8", 0, ", algorithm: nvls", 1, "{}"), "NVLink SHARP"));
  CHECK(says(refused("mi300x-8", 4, ", algorithm: msccl", 1, "{}"), "all eight GPUs of one host"));
  CHECK(says(refused("mi300x-8", 16, ", algorithm: msccl", 2, "{}"), "all eight GPUs of one host"));
  CHECK(says(refused("hgx-h100-8", 8, ", algorithm: msccl", 1, "{}"), "all eight GPUs of one host"));
  CHECK(says(refused("mi300x-8", 8, ", algorithm: msccl, launch: one_thread", 1, "{nccl: {version: \"2.20\"}}"),
             "all eight GPUs of one host"));
  CHECK(refused("mi300x-8", 8, ", algorithm: msccl", 1, "{}").empty());
  const auto gathered = on_host("mi300x-8", 0, "all_gather_perf, sizes: [1 MiB], algorithm: pat", 2);
  CHECK(says(test::refusal_of(gathered), "RCCL has it switched off"));
}

TEST_CASE("GPUs of AMD whose library is not modelled, and of two vendors or architectures, are refused") {
  const auto with = [](const std::string& hosts, const std::string& devices) {
    return test::refusal_of(
        test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: {schema: "
                       "fabricast/topology/1, name: t, " +
                       devices + "hosts: [" + hosts +
                       "], fabric: {single_switch: {switch: ethernet-400g-leaf, cable: 5 m}}}\n"
                       "workload: {benchmark: all_reduce_perf, sizes: [1 MiB]}\n"));
  };
  CHECK(says(with("{name: a, type: mi300x-8}, {name: b, type: hgx-h100-8, devices: [{name: hca0, type: "
                  "connectx-7-400g}]}",
                  ""),
             "no library joins them"));
  CHECK(says(with("{name: a, type: mi300x-8}, {name: b, type: mi355x-8}", ""),
             "CDNA 3 (MI300X) and CDNA 4 (MI355X) in one cluster"));
  CHECK(with("{name: a, type: mi350x-8}, {name: b, type: mi355x-8}", "").empty());
  const auto older =
      test::write_file("old-gpu.yaml",
                       "schema: fabricast/device/1\nname: mi250x\nkind: gpu\nattributes: {vendor: amd, "
                       "architecture: cdna2}\nvalues: {memory_bandwidth: {value: 1600 GB/s, source: s}, "
                       "compute_capability: {value: 90, source: s}, pcie_generation: {value: 4, source: s}, "
                       "pcie_width: {value: 16, source: s}}\n");
  const auto said = with(
      "{name: a, count: 2, host: {processor: epyc-rome, devices: [{name: gpu0, type: mi250x, below: "
      "socket0}, {name: hca0, type: connectx-7-400g, below: socket0}]}}",
      "devices: [" + older + "], ");
  CHECK(says(said, "mi250x"));
  CHECK(says(said, "CDNA 3"));
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

TEST_CASE("sends that crowd on one HCA, or leave HCAs idle, are said to") {
  const auto said = [](const std::string& hcas, const std::string& benchmark) {
    const auto prediction = test::run(test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
        "{name: n, count: 2, host: {processor: xeon-icelake, devices: [{name: sw0, kind: pcie_switch, below: socket0, "
        "pcie: gen4 x16}, {name: sw1, kind: pcie_switch, below: socket0, pcie: gen4 x16}, {name: gpu0, type: "
        "a100-pcie-40, below: sw0}, {name: gpu1, type: a100-pcie-40, below: sw0}, {name: gpu2, type: a100-pcie-40, "
        "below: sw1}, {name: gpu3, type: a100-pcie-40, below: sw1}, " +
        hcas + "]}}\n  fabric: {single_switch: {switch: qm8700}}\nworkload: {benchmark: " + benchmark +
        ", sizes: [1 MiB]}\n"));
    std::string lines;
    for (const auto& line : prediction.workloads[0].assumptions)
      if (line.find("NCCL takes") != std::string::npos) lines += line + "\n";
    return lines;
  };
  const auto hca = [](int number, const char* below) {
    return "{name: hca" + std::to_string(number) + ", type: connectx-6-hdr, below: " + below + "}";
  };
  // Both GPUs of the second switch take its one HCA, those of the first its three.
  const auto uneven = hca(0, "sw0") + ", " + hca(1, "sw0") + ", " + hca(2, "sw0") + ", " + hca(3, "sw1");
  CHECK(said(uneven, "alltoall_perf")
            .starts_with("n0.hca3 carries the data of 2 GPUs, where an even spread over the HCAs of n0 is 1:"));
  const auto even = hca(0, "sw0") + ", " + hca(1, "sw0") + ", " + hca(2, "sw1") + ", " + hca(3, "sw1");
  CHECK(said(even, "alltoall_perf").empty());
  // One far HCA, and none else: nothing to spread.
  CHECK(said(hca(0, "socket1"), "alltoall_perf").empty());
  CHECK(said(even, "sendrecv_perf").empty());
}
